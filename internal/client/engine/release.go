package engine

import (
	"context"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// Leave sends the releases of one lock for which no caller waits, because its context has
// ended. They are queued together: all of them or, with ErrClosed, none. HasRoom comes
// before.
func (e *Engine) Leave(calls ...*Call) error {
	if err := e.queueReleases(calls, false, nil); err != nil {
		return err
	}
	for _, c := range calls {
		e.counters.noteOp(&c.Op, context.Canceled)
	}
	e.drive(nil)
	return nil
}

// Discard queues the releases of one lock for which its holder does not wait, and behind them, if it is not nil,
// the acquire of another caller: all of them or, with ErrClosed, none. Drive or DriveSoon sends them. Their number is
// bounded by that of the locks which are held, and Config.MaxWaiting does not hold for them.
func (e *Engine) Discard(along *Call, calls ...*Call) error {
	return e.queueReleases(calls, true, along)
}

// queueReleases queues a cleanup in the place of each release, or none of them. Those that
// are discarded count as releases when they have ended.
func (e *Engine) queueReleases(calls []*Call, discard bool, along *Call) error {
	now := e.nodes.clock.Now()
	var l list
	for _, c := range calls {
		c.begin(now)
		own := e.rounds.cleanups.of(&c.Op)
		own.released = discard
		l.push(&own.Op)
	}
	if along != nil {
		along.over = false
		along.Reserve() // it is idle
		along.begin(now)
		l.push(&along.Op)
		e.queue.depth.Add(1)
	}
	err := e.queue.pushAll(l, unbounded)
	if err == nil {
		return nil
	}
	if along != nil {
		e.queue.depth.Add(-1)
	}
	for op := l.pop(); op != nil; op = l.pop() {
		e.counters.noteOp(op, err)
		op.Err, op.Until = err, clock.Never
		op.advance(idle)
		op.Done.Complete(op)
	}
	return err
}

// Late corrects what was counted for an acquire or extend that was completed well,
// but has no validity left when its caller comes to run. An acquire is abandoned.
func (e *Engine) Late(op *Op) { e.Forgo(op, ErrExpired) }

// Forgo is Late for an operation that comes to nothing for another reason: it is part of
// a whole that has failed with err.
func (e *Engine) Forgo(op *Op, err error) {
	e.counters.correct(op, err)
	if op.Kind == Acquire {
		e.Abandon(op)
	}
}

// Abandon sends the releases of acquires that were completed well and are not
// wanted after all, or that their caller does not wait for. Their results are not
// reported.
func (e *Engine) Abandon(ops ...*Op) {
	for _, op := range ops {
		e.rounds.cleanups.cleanUp(op)
	}
	e.drive(nil)
}
