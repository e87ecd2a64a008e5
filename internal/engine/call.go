package engine

import (
	"context"
	"time"
)

// Call is an operation whose caller waits for it.
type Call struct {
	Op
	ctx   context.Context // while in Do
	done  chan struct{}   // holds one
	timer *time.Timer     // made by the first Pause
}

// NewCall makes a Call, which can be used over and over.
func NewCall() *Call {
	c := &Call{done: make(chan struct{}, 1)}
	c.Done = c
	return c
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
