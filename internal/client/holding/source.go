package holding

import (
	"context"
	"sync"
)

// source is the parent of a lock's context, and so above all contexts derived from that. It has the values and the
// deadline of the user's context, and its error and cause once ended; derived contexts then have these, too. Package
// context attaches one context to it, by AfterFunc, without a goroutine, and takes it off again without user code. To
// find the cause it looks for one value, its own mark. A source remembers the user's answer to this, so the end runs
// no user code either.
type source struct {
	context.Context // the user's
	once            sync.Once
	err             error
	derived         func() // ends the derived context as this one has ended
	key, mark       any
}

// open is never closed: package context looks whether there is a channel, and relies on AfterFunc.
var open = make(chan struct{})

func (s *source) Done() <-chan struct{} { return open }
func (s *source) Err() error            { return s.err }

// AfterFunc is known to package context.
func (s *source) AfterFunc(f func()) (stop func() bool) {
	s.derived = f
	return func() bool { return true }
}

func (s *source) Value(key any) any {
	if s.key == nil {
		s.key, s.mark = key, s.Context.Value(key)
	}
	if s.key == key {
		return s.mark
	}
	return s.Context.Value(key)
}

// end ends the derived context with err, unless it has ended before.
func (s *source) end(err error) {
	s.once.Do(func() {
		s.err = err
		s.derived()
	})
}

// parent is the user's context as package context sees it. It asks the user's once, for the mark of package context,
// while this attaches to it. From then on it runs no user code: package context detaches on the keeper's goroutine,
// and waits for a context of an unknown kind on a goroutine of its own.
type parent struct {
	context.Context
	done       <-chan struct{}
	key, value any
}

func (p *parent) Done() <-chan struct{} { return p.done }

func (p *parent) Err() error {
	select {
	case <-p.done: // never, where it is nil
		return context.Canceled
	default:
		return nil
	}
}

func (p *parent) Value(key any) any {
	if p.key == nil {
		p.key, p.value = key, p.Context.Value(key)
	}
	if p.key != key {
		return nil
	}
	return p.value
}
