package holding

import (
	"context"
	"sync"
)

// source is the parent of a lock's context, and so above all contexts derived from this. It has the values and the
// deadline of the user's context, and its error and cause once ended; derived contexts then have these, too. Package
// context attaches one context to it, by AfterFunc, without a goroutine, and takes it off again without user code. To
// find the cause it looks for one value, its own mark. A cut remembers the user's answer to this, so the end runs
// no user code either.
type source struct {
	cut
	once    sync.Once
	err     error
	derived func() // ends the derived context as this one has ended
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

// end ends the derived context with err, unless it has ended before.
func (s *source) end(err error) {
	s.once.Do(func() {
		s.err = err
		s.derived()
	})
}

// parent is the user's context as package context sees it, which attaches to it, and detaches on the keeper's goroutine.
// Then it runs no user code. Package context waits for a context of an unknown kind on a goroutine of its own.
type parent struct {
	cut
	done <-chan struct{}
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

// cut is the user's context with its first answer remembered: the mark of package context, which asks for nothing else.
type cut struct {
	context.Context // the user's
	key, mark       any
}

func (c *cut) Value(key any) any {
	if c.key == nil {
		c.key, c.mark = key, c.Context.Value(key)
	}
	if c.key == key {
		return c.mark
	}
	return c.Context.Value(key)
}
