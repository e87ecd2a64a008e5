package engine

import (
	"context"
	"time"
	"unsafe"
)

// Call is an operation whose caller waits for it.
type Call struct {
	Op
	ctx   context.Context // while in Do
	done  chan struct{}   // holds one
	timer *time.Timer     // made by the first Pause
}

// Call returns a Call to be used with Do, as often as its user likes, and then
// given to Free. The engine reads the key where it is and never writes to it.
func (e *Engine) Call(kind Kind, key string, ttl time.Duration) *Call {
	c, _ := e.calls.Get().(*Call)
	if c == nil {
		c = &Call{done: make(chan struct{}, 1)}
		c.Done = c
	}
	c.Kind, c.Key, c.TTL = kind, unsafe.Slice(unsafe.StringData(key), len(key)), ttl
	return c
}

// Free takes a Call back.
func (e *Engine) Free(c *Call) {
	c.Key = nil
	e.calls.Put(c)
}

// Complete implements Completion.
func (c *Call) Complete(*Op) { c.done <- struct{}{} }

// Do submits a call and waits for its result. An error is one of Submit, or the
// context's, untouched; in the latter case an acquire is being cleaned up after
// and an extend or a release may or may not take effect. The result of the
// operation itself is in the Call.
func (e *Engine) Do(ctx context.Context, c *Call) error {
	c.ctx = ctx
	defer func() { c.ctx = nil }()
	if err := e.enqueue(&c.Op); err != nil {
		return err
	}
	e.drive(c)
	ended := ctx.Done()
	if ended == nil {
		<-c.done
		return nil
	}
	select {
	case <-c.done:
		return nil
	default:
	}
	select {
	case <-c.done:
		return nil
	case <-ended:
	}
	if e.Cancel(&c.Op) {
		if c.Kind == Release {
			e.Abandon(&c.Op) // it may have been taken back before it was sent
		}
		return ctx.Err()
	}
	<-c.done // it was settled first
	return nil
}

// Pause waits for d or for the end of ctx, whose error it returns.
func (c *Call) Pause(ctx context.Context, d time.Duration) error {
	if c.timer == nil {
		c.timer = time.NewTimer(d)
	} else {
		c.timer.Reset(d)
	}
	select {
	case <-c.timer.C:
		return nil
	case <-ctx.Done():
		c.timer.Stop()
		return ctx.Err()
	}
}
