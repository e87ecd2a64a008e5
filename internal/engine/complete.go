package engine

import (
	"errors"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/quorum"
)

// complete hands every operation that has a verdict back to its caller, and returns
// how many calls there were among them. The clock is read here, after the deciding
// votes, so validity can only come out too short.
func (e *Engine) complete() (calls int) {
	e.sendRepairs() // before the driver lock is given up, and before any release
	if e.decided.first == nil {
		return 0
	}
	now := e.clock.Now()
	var ops list
	for op := e.decided.pop(); op != nil; op = e.decided.pop() {
		if op.batch != nil {
			e.judge(op, now)
		}
		if e.closing.Load() && op.Err == ErrNoQuorum && closedUnder(op) {
			op.Err = ErrClosed
		}
		if op.Kind == Release { // won or not: nodes that may have had the key have it no more
			e.observer.KeyChanged(e.quorum.Nodes()&^op.Absent, op.Key, true)
		}
		if c, own := op.Done.(*cleanup); own {
			if c.released {
				e.count(op, endingOf(op.Err))
			} else {
				e.counters.cleanups++
			}
			op.advance(idle)
			c.Complete(op)
			continue
		}
		e.count(op, endingOf(op.Err))
		e.depth.Add(-1)
		if c, blocking := op.Done.(*Call); blocking {
			calls++
			op.advance(idle)
			c.Complete(op)
		} else if op.Prompt {
			op.advance(idle)
			op.Done.Complete(op)
		} else {
			ops.push(op)
		}
	}
	if ops.n > 0 {
		e.collectOps.Store(int64(now + collectTime(ops.n)))
		e.callbacks.complete(&ops)
	}
	return calls
}

// judge turns the votes on op into its result, and sends the release after an
// acquire that did not become a lock.
func (e *Engine) judge(op *Op, now time.Duration) {
	b, r := op.batch, &op.batch.rounds[op.round]
	op.batch = nil
	op.Tally = r.tally
	switch {
	case r.kind.HasValue():
		e.giveValues(op, b)
	case op.Tally.Verdict() == quorum.Won && !op.Kind.HasTTL():
	case op.Tally.Verdict() == quorum.Won:
		if now >= op.Until || op.Before != 0 && now >= op.Before {
			op.Err = ErrExpired
		}
	default:
		op.Err = e.lossOf(op)
		e.explain(op, b)
	}
	if op.Kind != Acquire {
		return
	}
	if !op.Part {
		e.counters.times.Add(op.Took(now))
	}
	for at := r.refusal; at > 0; {
		t := &b.refusals[at-1]
		op.Refusals = append(op.Refusals, t.Refusal)
		at = t.before
	}
	if op.Absent = r.absent; op.Err != nil {
		e.cleanUp(op)
	}
}

// explain gives op the cause of each failed vote.
func (e *Engine) explain(op *Op, b *batch) {
	for node := range e.nodes {
		if op.Tally.Outcome(node) == quorum.Failed {
			op.Failures = append(op.Failures, Failure{node, b.causeOf(node, op.round)})
		}
	}
}

// giveValues gives a Call that reads the answers of the nodes.
func (e *Engine) giveValues(op *Op, b *batch) {
	e.explain(op, b)
	if c, ok := op.Done.(*Call); ok {
		for _, v := range b.answers {
			if v.round == op.round {
				c.Values = append(c.Values, v.Value)
			}
		}
	}
}

// lossOf names the reason of a lost round. An extend or a release is "not held"
// only if the denials alone rule a quorum out; with fewer of them the nodes
// that failed may still hold the key.
func (e *Engine) lossOf(op *Op) error {
	switch {
	case (op.Kind == Acquire || op.Kind == Look) && op.Tally.Verdict() == quorum.Lost && !e.quorum.Blocks(op.Tally.Nodes(quorum.Failed)):
		if op.Tally.Count(quorum.Granted) > 0 {
			return ErrSplit
		}
		return ErrTaken
	case op.Kind != Acquire && e.quorum.Blocks(op.Tally.Nodes(quorum.Denied)):
		return ErrNotHeld
	}
	return ErrNoQuorum
}

// Joint is the error of several operations that are one: of those before, and of the next.
// They have won if all have. A denial decides: the others cannot make up for it. Split votes
// decide last: only they are worth another round.
func Joint(before, next error) error {
	switch {
	case isDenial(before):
		return before
	case before == nil, isDenial(next), before == ErrSplit && next != nil:
		return next
	}
	return before
}

func isDenial(err error) bool { return err == ErrTaken || err == ErrNotHeld }

func closedUnder(op *Op) bool {
	for _, f := range op.Failures {
		if errors.Is(f.Err, conn.ErrClosed) {
			return true
		}
	}
	return false
}

// cleanup is the release that follows an acquire which failed, came too late or
// was cancelled. No caller waits for it.
type cleanup struct {
	Op
	engine   *Engine
	key      []byte
	released bool // by the holder of a lock: it counts as a release
}

// Complete implements Completion.
func (c *cleanup) Complete(*Op) { c.engine.cleanups.Put(c) }

// newCleanup makes the release of op. It copies what it needs: op belongs to its
// caller again soon.
func (e *Engine) newCleanup(op *Op) *cleanup {
	c, _ := e.cleanups.Get().(*cleanup)
	if c == nil {
		c = &cleanup{engine: e}
		c.Done = c
	}
	c.released = false
	c.key = append(c.key[:0], op.Key...)
	c.Kind, c.Key, c.Token, c.Tail, c.TTL, c.Timeout, c.Absent = Release, c.key, op.Token, op.Tail, 0, op.Timeout, op.Absent
	c.Part = op.Part
	c.Reserve() // it is idle
	c.begin(op.start)
	return c
}

// cleanUp queues the release that undoes an acquire, on all nodes, unless no node can have
// the key. Each node gets it after the acquire.
func (e *Engine) cleanUp(op *Op) {
	if e.quorum.Nodes()&^op.Absent != 0 {
		_ = e.queue.push(&e.newCleanup(op).Op, true) // cleanups are never refused
	}
}

// Abandon sends the releases of acquires that were completed well and are not
// wanted after all, or that their caller does not wait for. Their results are not
// reported.
func (e *Engine) Abandon(ops ...*Op) {
	for _, op := range ops {
		e.cleanUp(op)
	}
	e.drive(nil)
}
