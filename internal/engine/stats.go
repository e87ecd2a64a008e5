package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/metrics"
	"github.com/redlock-go/redlock/quorum"
)

// Votes is one node's votes, by [quorum.Outcome].
type Votes [quorum.Failed + 1]uint64

// ending is a field of metrics.Results.
type ending uint8

const (
	won ending = iota
	denied
	noQuorum
	expired
	cancelled
	refused
	endings
)

// endingOf is the ending for an operation's error. Errors that are not the engine's
// are those of contexts.
func endingOf(err error) ending {
	switch err {
	case nil:
		return won
	case ErrTaken, ErrSplit, ErrNotHeld:
		return denied
	case ErrNoQuorum:
		return noQuorum
	case ErrExpired:
		return expired
	case ErrBusy, ErrClosed:
		return refused
	}
	return cancelled
}

// counters are the counts that Stats copies. They belong to the driver and are plain.
// aside is atomic: goroutines that do not drive count there, which is rare.
type counters struct {
	ended      [command.Kinds][endings]uint64
	aside      [command.Kinds][endings]atomic.Uint64
	votes      [quorum.MaxNodes]Votes
	times      metrics.Histogram
	cleanups   uint64
	batches    uint64
	operations uint64
}

// send counts a batch.
func (c *counters) send(operations int) {
	c.batches++
	c.operations += uint64(operations)
}

func (c *counters) addTo(r *metrics.Results, kind Kind) {
	for e, field := range []*uint64{won: &r.Won, denied: &r.Denied, noQuorum: &r.NoQuorum, expired: &r.Expired, cancelled: &r.Cancelled, refused: &r.Refused} {
		*field += c.ended[kind][e] + c.aside[kind][e].Load()
	}
}

// AddStats adds what the engine has counted. It counts in operations, not in calls: an acquire that
// is tried three times counts three times. The driver lock is held.
func AddStats[N any](e *Engine, s *metrics.Stats[N]) {
	c := &e.counters
	c.addTo(&s.Acquire, Acquire)
	c.addTo(&s.Extend, Extend)
	c.addTo(&s.Release, Release)
	(*metrics.Histogram)(&s.AcquireTimes).Merge(c.times)
	s.Cleanups += c.cleanups
	s.Batches += c.batches
	s.Operations += c.operations
	s.Waiting += int(e.queue.size.Load())
	s.InFlight += e.undecided
}

// Votes returns the votes of a node. The driver lock is held.
func (e *Engine) Votes(node int) Votes { return e.counters.votes[node] }

// count counts an operation that has ended. The driver lock is held.
func (e *Engine) count(op *Op, how ending) {
	if !op.Part {
		e.counters.ended[op.Kind][how]++
	}
}

// Note counts an operation that ended with err before it was submitted, or one of several
// parts.
func (e *Engine) Note(kind Kind, err error) { e.counters.aside[kind][endingOf(err)].Add(1) }

// noteOp is count without the driver lock.
func (e *Engine) noteOp(op *Op, err error) {
	if !op.Part {
		e.Note(op.Kind, err)
	}
}

// Leave sends the releases of one lock for which no caller waits, because its context has
// ended. They are queued together: all of them or, with ErrClosed, none. HasRoom comes
// before.
func (e *Engine) Leave(calls ...*Call) error {
	if err := e.queueReleases(calls, false, nil); err != nil {
		return err
	}
	for _, c := range calls {
		e.noteOp(&c.Op, context.Canceled)
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
	now := e.clock.Now()
	var l list
	for _, c := range calls {
		c.begin(now)
		own := e.newCleanup(&c.Op)
		own.released = discard
		l.push(&own.Op)
	}
	if along != nil {
		along.over = false
		along.Reserve() // it is idle
		along.begin(now)
		l.push(&along.Op)
		e.depth.Add(1)
	}
	err := e.queue.pushAll(l, unbounded)
	if err == nil {
		return nil
	}
	if along != nil {
		e.depth.Add(-1)
	}
	for op := l.pop(); op != nil; op = l.pop() {
		e.noteOp(op, err)
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
	if !op.Part {
		e.Note(op.Kind, err)
		e.counters.aside[op.Kind][won].Add(^uint64(0)) // one less
	}
	if op.Kind == Acquire {
		e.Abandon(op)
	}
}

// Took is how long it is from the submission of an operation to an instant.
func (op *Op) Took(now time.Duration) time.Duration { return now - op.start }

// observe counts a vote, and has it reported.
func (e *Engine) observe(node int, kind Kind, o quorum.Outcome, err error) {
	e.counters.votes[node][o]++
	if e.onVote != nil {
		e.callbacks.vote(vote{node, kind, o, err})
	}
}
