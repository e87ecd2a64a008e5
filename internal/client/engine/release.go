package engine

import "context"

// Leave sends the releases of one lock for which no caller waits, because its context has
// ended. They are queued together: all of them or, with ErrClosed, none. HasRoom comes
// before.
func (e *Engine) Leave(releases Ops) error {
	if err := e.queueReleases(releases, false, nil); err != nil {
		return err
	}
	for op := releases.first; op != nil; op = op.next {
		e.counters.noteOp(op, context.Canceled)
	}
	e.drive(nil)
	return nil
}

// Discard queues the releases of one lock for which its holder does not wait, and behind them, if
// it is not nil, the acquire of another caller: all of them or, with ErrClosed, none. Drive or
// DriveSoon sends them. Their number is bounded by that of the locks which are held, and
// Config.MaxWaiting does not hold for them.
func (e *Engine) Discard(releases Ops, along *Call) error {
	return e.queueReleases(releases, true, along)
}

// queueReleases queues a cleanup in the place of each release, or none of them. Those that
// are discarded count as releases when they have ended.
func (e *Engine) queueReleases(releases Ops, discard bool, along *Call) error {
	now := e.nodes.clock.Now()
	var l list
	for op := releases.first; op != nil; op = op.next {
		op.begin(now)
		own := e.rounds.cleanups.of(op)
		own.released = discard
		l.push(&own.Op)
	}
	return e.enqueueAll(l, along, now, unawaited)
}

// Forgo corrects what was counted for an acquire or extend that was completed well, but comes to
// nothing because of err: its caller has run too late, or it is part of a whole that has failed. An
// acquire is abandoned.
func (e *Engine) Forgo(op *Op, err error) {
	e.counters.correct(op, err)
	if op.Kind == Acquire {
		e.Abandon(op)
	}
}

// Abandon sends the release of an acquire that was completed well and is not wanted after all, or
// that has no caller who waits. Its result is not reported.
func (e *Engine) Abandon(op *Op) {
	e.rounds.cleanups.cleanUp(op)
	e.drive(nil)
}
