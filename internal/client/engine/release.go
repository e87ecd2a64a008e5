package engine

import "context"

// Leave sends the releases of one lock after the end of its caller's context. They are queued together: all of them
// or, with ErrClosed, none.
func (e *Engine) Leave(releases Ops) error {
	if err := e.queueReleases(releases, cleansUp, nil); err != nil {
		return err
	}
	for op := releases.first; op != nil; op = op.next {
		e.counters.noteOp(op, context.Canceled)
	}
	e.drive(nil)
	return nil
}

// Discard queues the releases of one lock for a holder that does not wait, and behind them, if it is not nil, the
// acquire of another caller: all of them or, with ErrClosed, none. Drive or DriveSoon sends them. The locks held
// bound their number, so Config.MaxWaiting does not apply.
func (e *Engine) Discard(releases Ops, along *Call) error {
	return e.queueReleases(releases, frees, along)
}

// queueReleases queues a cleanup in place of each release, or none of them.
func (e *Engine) queueReleases(releases Ops, how Ends, along *Call) error {
	now := e.nodes.clock.Now()
	var l list
	for op := releases.first; op != nil; op = op.next {
		op.begin(now)
		own := e.rounds.cleanups.of(op)
		own.Ends = how
		l.push(&own.Op)
	}
	return e.enqueueAll(l, along, now, unawaited)
}

// Discount corrects the counts of an acquire or extend, completed well but in vain because of err: its caller has run
// too late, or it is part of a failed whole. An acquire is abandoned.
func (e *Engine) Discount(op *Op, err error) {
	e.counters.correct(op, err)
	if op.Kind == Acquire {
		e.Abandon(op)
	}
}

// Abandon sends the release of an acquire, completed well but unwanted after all, or without a waiting caller. Its
// result is not reported.
func (e *Engine) Abandon(op *Op) {
	e.rounds.cleanups.cleanUp(op)
	e.drive(nil)
}
