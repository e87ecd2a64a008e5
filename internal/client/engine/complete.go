package engine

import (
	"errors"
	"slices"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/quorum"
)

// complete hands every operation with a verdict back to its caller, or to the callbacks. It returns the number of calls
// among them. The clock is read here, after the deciding votes, so validity can only come out too short.
func (lg *ledger) complete() (calls int) {
	if len(lg.decided) == 0 && lg.ready == 0 {
		return 0
	}
	var ops list
	now := lg.nodes.clock.Now()
	for i := range lg.decided {
		d := lg.decided[i]
		op := d.op
		if d.votes != nil {
			lg.judge(op, d.votes, d.round, now)
		}
		if lg.nodes.closing.Load() && op.Err == ErrNoQuorum && slices.ContainsFunc(op.Failures, func(f Failure) bool { return errors.Is(f.Err, conn.ErrClosed) }) {
			op.Err = ErrClosed
		}
		if op.Kind == Release { // won or not: nodes that may have had the key have it no more
			lg.observer.KeyChanged(lg.nodes.quorum.Nodes()&^op.Absent, op.Key, true)
		}
		if op.Ends == cleansUp {
			lg.counters.cleanups++
		} else {
			lg.counters.count(op, endingOf(op.Err))
		}
		if op.Ends.isAwaited() {
			lg.queue.depth.Add(-1)
		}
		switch op.Ends {
		case CallsBack:
			ops.push(op)
			continue
		case wakes:
			calls++
		}
		op.advance(idle)
		op.Done.Complete(op)
	}
	clear(lg.decided)
	lg.decided = lg.decided[:0]
	if lg.ready != 0 {
		lg.goOn()
	}
	if ops.n > 0 {
		lg.callbacks.complete(ops, now)
	}
	return calls
}

// judge turns the votes on op into its result, and sends the release after an acquire without a lock.
func (lg *ledger) judge(op *Op, v *votes, round int, now clock.Instant) {
	r := &v.rounds[round]
	op.Tally, op.SentAt, op.Trip = r.tally, v.sentAt, now.Sub(v.sentAt)
	switch {
	case op.Tally.Verdict() == quorum.Won && !op.Kind.HasTTL():
	case op.Tally.Verdict() == quorum.Won:
		if now >= op.Until || op.Before != 0 && now >= op.Before {
			op.Err = ErrExpired
		}
	default:
		op.Gated = r.gated
		op.Err = lg.lossOf(op)
		for node := range op.Tally.Nodes(quorum.Failed).All() {
			op.Failures = append(op.Failures, Failure{node, v.causeOf(node, round)})
		}
	}
	if op.Kind != Acquire {
		return
	}
	if !op.OfSet {
		lg.counters.times.Add(op.Took(now))
	}
	for at := r.answer; at > 0; {
		t := &v.answers[at-1]
		op.Answers = append(op.Answers, t.Answer)
		at = t.before
	}
	op.Absent = r.absent
	if op.Err != nil {
		lg.cleanUp(op)
	}
}

// lossOf names the reason of a lost round. It is taken, or not held, only if the denials alone rule a quorum out; with
// fewer denials the other nodes may have the key, or be free.
func (lg *ledger) lossOf(op *Op) error {
	switch {
	case (op.Kind == Acquire || op.Kind == Look) && op.Tally.Verdict() == quorum.Lost && !lg.nodes.quorum.Blocks(op.Tally.Nodes(quorum.Failed)):
		switch {
		case op.Gated != 0 && !lg.nodes.quorum.Blocks(op.Tally.Nodes(quorum.Denied)&^op.Gated):
			return ErrGated // also of split votes: a gate's caller waits for its turn, and no other round would win
		case op.Gated == 0 && op.Tally.Count(quorum.Granted) > 0:
			return ErrSplit
		case lg.nodes.quorum.Blocks(op.Tally.Nodes(quorum.Denied)):
			return ErrTaken
		}
	case op.Kind != Acquire && lg.nodes.quorum.Blocks(op.Tally.Nodes(quorum.Denied)):
		return ErrNotHeld
	}
	return ErrNoQuorum
}

// Joint is the error of several operations in one: of the earlier ones, and of the next. They have won if all have. A
// denial decides: the others cannot make up for it. Split votes decide last: only they are worth another round.
func Joint(before, next error) error {
	switch {
	case isDenial(before):
		return before
	case before == nil, isDenial(next), before == ErrSplit && next != nil:
		return next
	}
	return before
}

func isDenial(err error) bool { return err == ErrTaken || err == ErrGated || err == ErrNotHeld }
