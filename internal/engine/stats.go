package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/quorum"
)

// Stats counts the engine's work since it was made. It counts in operations,
// not in calls: an acquire that is tried three times counts three times.
type Stats struct {
	Acquire, Extend, Release Results

	Cleanups   uint64 // releases without a caller
	Batches    uint64 // written, repeats after NOSCRIPT not counted
	Operations uint64 // in them, cleanups among them
	Waiting    int    // to be sent
	InFlight   int    // sent and without a verdict, cleanups among them
}

// Results counts the operations of a kind by how they ended. Each accepted operation
// counts once, in one field.
type Results struct{ Won, Denied, NoQuorum, Expired, Cancelled, Refused uint64 }

// Votes is one node's votes, by [quorum.Outcome].
type Votes [quorum.Failed + 1]uint64

// ending is a field of Results.
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
	case ErrTaken, ErrNotHeld:
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
	cleanups   uint64
	batches    uint64
	operations uint64
}

// send counts a batch.
func (c *counters) send(operations int) {
	c.batches++
	c.operations += uint64(operations)
}

func (c *counters) results(kind Kind) Results {
	of := func(e ending) uint64 { return c.ended[kind][e] + c.aside[kind][e].Load() }
	return Results{of(won), of(denied), of(noQuorum), of(expired), of(cancelled), of(refused)}
}

// Stats returns the counts. The driver lock is held.
func (e *Engine) Stats() Stats {
	c := &e.counters
	return Stats{
		c.results(Acquire), c.results(Extend), c.results(Release),
		c.cleanups, c.batches, c.operations,
		int(e.queue.size.Load()), e.undecided,
	}
}

// Votes returns the votes of a node. The driver lock is held.
func (e *Engine) Votes(node int) Votes { return e.counters.votes[node] }

// Note counts an operation that ended with err before it was submitted.
func (e *Engine) Note(kind Kind, err error) { e.counters.aside[kind][endingOf(err)].Add(1) }

// Leave sends the release of a Call whose caller does not wait for it, because its
// context has ended. With an error (ErrClosed, ErrBusy) nothing was queued.
func (e *Engine) Leave(op *Op) error {
	op.begin(e.clock.Now())
	c := e.newCleanup(op)
	if err := e.queue.push(&c.Op, false); err != nil {
		c.advance(idle)
		c.Complete(nil)
		e.Note(op.Kind, err)
		return err
	}
	e.Note(op.Kind, context.Canceled)
	e.drive(nil)
	return nil
}

// Discard queues the release of a lock whose holder does not wait for it, unless the
// engine is closed; DriveSoon sends it.
func (e *Engine) Discard(op *Op) {
	if e.closing.Load() {
		e.Note(op.Kind, ErrClosed)
		return
	}
	op.begin(e.clock.Now())
	c := e.newCleanup(op)
	c.released = true
	_ = e.queue.push(&c.Op, true) // bounded by the locks that are held
}

// Late corrects what was counted for an acquire or extend that was completed well,
// but has no validity left when its caller comes to run. An acquire is abandoned.
func (e *Engine) Late(op *Op) { e.Forgo(op, ErrExpired) }

// Forgo is Late for an operation that comes to nothing for another reason: it is part of
// a whole that has failed with err.
func (e *Engine) Forgo(op *Op, err error) {
	e.Note(op.Kind, err)
	e.counters.aside[op.Kind][won].Add(^uint64(0)) // one less
	if op.Kind == Acquire {
		e.Abandon(op)
	}
}

// Took is how long it is from the submission of an operation to an instant.
func (op *Op) Took(now time.Duration) time.Duration { return now - op.start }

// observe counts a vote, and has it told.
func (e *Engine) observe(node int, kind Kind, o quorum.Outcome, err error) {
	e.counters.votes[node][o]++
	if e.onVote != nil {
		e.callbacks.vote(vote{node, kind, o, err})
	}
}
