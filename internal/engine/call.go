package engine

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/fencing"
)

// Call is an operation that its caller waits for.
type Call struct {
	Op
	Proposal fencing.Proposal // of a caller of fenced acquires
	Values   []Value          // of a kind that reads: what nodes have answered, in that order

	ended <-chan struct{} // closed when the caller's context ends; nil: it does not
	over  bool            // the context's end has ended the call
	done  chan struct{}   // holds one
	along int64           // how many calls were sent along with it
}

// Call returns a Call to be used with Do, as often as its user likes, and then
// given to Free; or an error if an argument is wrong. Do does not check them again.
// The engine reads the key where it is and never writes to it.
func (e *Engine) Call(kind Kind, key string, ttl time.Duration) (*Call, error) {
	c, _ := e.calls.Get().(*Call)
	if c == nil {
		c = &Call{done: make(chan struct{}, 1)}
		c.Done = c
	}
	c.Absent, c.Tail, c.Part, c.Before, c.Repairer = 0, "", false, 0, nil
	c.Block, c.Proposal = fencing.Block{}, fencing.Proposal{}
	c.Values = c.Values[:0]
	c.Kind, c.TTL = kind, ttl
	c.SetKey(key)
	if err := e.check(&c.Op); err != nil {
		e.Free(c)
		return nil, err
	}
	return c, nil
}

// Free takes a Call back.
func (e *Engine) Free(c *Call) {
	c.Key, c.ended, c.over = nil, nil, false
	clear(c.Values)
	e.calls.Put(c)
}

// Complete implements Completion. The driver calls it, for it is no user code.
func (c *Call) Complete(*Op) { c.done <- struct{}{} }

// Watch makes the end of ctx end the calls that follow. The context is user code, so
// only the caller's goroutine calls it. The driver knows its Done channel, which
// cannot block or panic.
func (c *Call) Watch(ctx context.Context) { c.ended = ctx.Done() }

// Do submits a call and waits for its result. An error is ErrBusy, but not of a release
// (HasRoom), ErrClosed or that of ctx, which was given to Watch. After an error of ctx the
// release of an acquire is under way, an extend may or may not take effect, and a release is
// sent. The result of the operation itself is in the Call.
//
// Do waits on one channel only. To wait for the context as well would mean a
// select, which takes the locks of both channels twice for every operation, and
// the context's is often shared. So the watchdog looks at the Done channels of
// the calls that are under way at each of its ticks, maxTick apart at most.
func (e *Engine) Do(ctx context.Context, c *Call) error {
	c.over, c.along = false, 0
	var l list
	l.push(&c.Op)
	now := e.clock.Now()
	if err := e.enqueueAll(l, now, urgencyOf(c)); err != nil {
		return err
	}
	e.submitted(c.Kind, now, c)
	return e.await(ctx, c)
}

func urgencyOf(c *Call) urgency {
	if c.Kind == Release {
		return unbounded // its caller has asked for room before
	}
	return bounded
}

// HasRoom reports whether n more operations may wait. The caller of a release asks before it
// ends anything of its lock; the release is then queued in any case, so that a
// release that is refused has changed nothing. Beyond Config.MaxWaiting there are at most as
// many releases as callers ask for at once.
func (e *Engine) HasRoom(n int) bool {
	return e.closing.Load() || int(e.queue.size.Load())+n <= e.queue.limit
}

// await waits for the result of a call that was submitted.
func (e *Engine) await(ctx context.Context, c *Call) error {
	<-c.done
	return c.Ended(ctx)
}

// Ended is nil for a call that has a result, and else the error of ctx, which has ended it.
func (c *Call) Ended(ctx context.Context) error {
	if !c.over {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.Canceled // its Done channel is closed, so it has ended
}

// AwaitAlong waits for the end of a call that DoWith was given to send along.
func (e *Engine) AwaitAlong(along *Call) { <-along.done }

// DoWith is Do for c, with another call sent along after it. The other call ends once in every
// case. Its caller waits for that with AwaitAlong, and gets the same error as c if neither
// was sent.
func (e *Engine) DoWith(ctx context.Context, c, along *Call) error {
	c.over, c.along, along.over = false, 1, false
	var l list
	l.push(&c.Op)
	l.push(&along.Op)
	now := e.clock.Now()
	if err := e.enqueueAll(l, now, bounded); err != nil {
		along.done <- struct{}{}
		return err
	}
	e.submitted(c.Kind, now, c)
	return e.await(ctx, c)
}

// DoAll is Do for several calls of a kind, which are queued together: all of them or, with
// ErrBusy or ErrClosed, none.
func (e *Engine) DoAll(ctx context.Context, calls []*Call) error {
	if err := e.Begin(calls); err != nil {
		return err
	}
	return AwaitAll(ctx, calls)
}

// Begin is DoAll up to where that waits. Without an error AwaitAll follows.
func (e *Engine) Begin(calls []*Call) error {
	var l list
	for _, c := range calls {
		c.over = false
		l.push(&c.Op)
	}
	now := e.clock.Now()
	if err := e.enqueueAll(l, now, urgencyOf(calls[0])); err != nil {
		return err
	}
	e.submittedNow(calls[0].Kind, now, nil)
	return nil
}

// AwaitAll waits for the results of calls that Begin has queued.
func AwaitAll(ctx context.Context, calls []*Call) error {
	last := calls[0]
	for _, c := range calls {
		if <-c.done; c.over {
			last = c
		}
	}
	return last.Ended(ctx)
}

// Over reports whether the end of the context has ended the call, which has no result
// then.
func (c *Call) Over() bool { return c.over }

// IsClosed reports whether a Done channel is closed. It runs no user code.
func IsClosed(done <-chan struct{}) bool {
	select {
	case <-done: // never, where it is nil
		return true
	default:
		return false
	}
}

// checkContexts ends the calls of b with a context that has ended. To claim one takes it
// from its round, so that no vote can end it too.
func (e *Engine) checkContexts(b *batch) {
	for i := range b.rounds {
		r := &b.rounds[i]
		if r.op == nil || r.ended == nil || !IsClosed(r.ended) || !r.op.claim(r.life, idle) {
			continue
		}
		c := r.op.Done.(*Call)
		if c.Kind == Acquire {
			c.Absent = r.absent
			e.cleanUp(&c.Op)
		}
		e.finish(c)
	}
}

// scanWaiting is how many queued operations are looked at in a tick.
const scanWaiting = 2048

// checkWaitingContexts does the same for calls that have not been sent. A release
// keeps its place in the queue: its caller has gone, but it is sent, and
// before an acquire that was submitted after it.
func (e *Engine) checkWaitingContexts() {
	var ended list
	e.queue.scan(scanWaiting, func(op *Op) {
		c, ok := op.Done.(*Call)
		if !ok || c.ended == nil || !IsClosed(c.ended) {
			return
		}
		if op.Kind == Release {
			e.queue.replace(op, &e.newCleanup(op).Op)
		} else {
			e.queue.unlink(op)
		}
		ended.push(op)
	})
	for op := ended.pop(); op != nil; op = ended.pop() {
		e.finish(op.Done.(*Call))
	}
}

// finish ends a call because its context has ended.
func (e *Engine) finish(c *Call) {
	c.over = true
	e.depth.Add(-1)
	e.count(&c.Op, cancelled)
	c.done <- struct{}{}
}
