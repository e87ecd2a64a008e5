package engine

import (
	"context"
	"time"
	"unsafe"
)

// Call is an operation whose caller waits for it.
type Call struct {
	Op
	ctx   context.Context // of the Do under way, or the last one
	ended error           // the context's error, if that is why it ended
	done  chan struct{}   // holds one
	timer *time.Timer     // made by the first Pause
	doing bool            // a Do has not returned
}

// Call returns a Call to be used with Do, as often as its user likes, and then
// given to Free. The engine reads the key where it is and never writes to it.
func (e *Engine) Call(kind Kind, key string, ttl time.Duration) *Call {
	c, _ := e.calls.Get().(*Call)
	if c == nil {
		c = &Call{done: make(chan struct{}, 1)}
		c.Done = c
	}
	c.Absent = 0
	c.Kind, c.Key, c.TTL = kind, unsafe.Slice(unsafe.StringData(key), len(key)), ttl
	return c
}

// Free takes a Call back. One whose Do was left by the panic of a callback is not
// used again: it may still be under way, or its channel hold a result.
func (e *Engine) Free(c *Call) {
	if c.doing {
		return
	}
	c.Key, c.ctx = nil, nil
	e.calls.Put(c)
}

// Complete implements Completion.
func (c *Call) Complete(*Op) { c.done <- struct{}{} }

// Do submits a call and waits for its result. An error is one of Submit, or the
// context's, untouched; in the latter case an acquire is being cleaned up after
// and an extend or a release may or may not take effect. The result of the
// operation itself is in the Call.
//
// It waits on one channel only. To wait for the context as well would mean a
// select, which takes the locks of both channels twice for every operation, and
// the context's is often everybody's. So the watchdog looks at the contexts of
// the calls that are under way at each of its ticks, maxTick apart at most.
func (e *Engine) Do(ctx context.Context, c *Call) error {
	c.ctx, c.ended, c.doing = ctx, nil, true
	err := e.do(c)
	c.doing = false
	return err
}

func (e *Engine) do(c *Call) error {
	if err := e.enqueue(&c.Op); err != nil {
		return err
	}
	e.drive(c)
	if c.ctx.Err() != nil && e.Cancel(&c.Op) { // before it began, or while it read alone
		c.end()
		if c.Kind == Release {
			e.Abandon(&c.Op) // it may have been taken back before it was sent
		}
		return c.ended
	}
	<-c.done
	return c.ended
}

// end notes that the call ends because its context has.
func (c *Call) end() { c.ended = c.ctx.Err() }

// heed ends the calls of b whose context has ended. While it looks at one, it
// has claimed it: nobody else can end it, and it is not some later use of the
// same Call.
func (e *Engine) heed(b *batch) {
	for i := range b.rounds {
		r := &b.rounds[i]
		if r.op == nil || !r.watched || !r.op.claim(r.life) {
			continue
		}
		c := r.op.Done.(*Call)
		if c.ctx.Err() == nil {
			c.state.Store(r.life) // as it was
			continue
		}
		if c.Kind == Acquire {
			c.Absent = b.without(&r.tally)
			e.cleanUp(&c.Op)
		}
		e.finish(c)
	}
}

// heedWaiting does the same for calls that have not been sent.
func (e *Engine) heedWaiting() {
	ended := e.queue.filter(func(op *Op) bool {
		c, ok := op.Done.(*Call)
		return ok && c.ctx.Err() != nil
	})
	for op := ended.pop(); op != nil; op = ended.pop() {
		if op.Kind == Release {
			e.cleanUp(op) // a release is sent all the same
		}
		e.finish(op.Done.(*Call))
	}
}

func (e *Engine) finish(c *Call) {
	c.end()
	e.depth.Add(-1)
	e.counters.ended[c.Kind][cancelled]++
	c.done <- struct{}{}
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
