package client

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/token"
)

// Op is an operation without a waiting caller. Its user sets Kind, Key, TTL and Done; Submit sets
// the rest.
//
// A moving key is in a second group, asked after the first: an acquire or extend goes on where it has won, a release
// in any case. To its user the operation is under way until both have ended.
type Op struct {
	engine.Call
	group   *site // of the last Submit
	parts   operation
	second  *engine.Call // of parts, or of earlier ones
	holder  *token.Token // of an acquire: where its user finds the token
	decider *engine.Op   // the part of the result
	err     error        // the result
}

// ofOp is the context of an operation without a waiting caller.
var ofOp context.Context

// Submit begins a reserved operation, on the lock of t, in g and, where the key moves, in another group after it. For
// an acquire it makes t a new token first.
func (g *site) Submit(op *Op, t *token.Token, also *site) error {
	if op.Kind == engine.Look {
		op.Kind = 0 // and is refused as unknown
	}
	op.Tail = g.cfg.Tail
	if op.Kind == engine.Acquire {
		submitted := false
		defer func() {
			if !submitted { // Rand is user code: it may panic
				op.Unreserve()
			}
		}()
		op.Proposal, op.holder = fencing.Proposal{}, t
		f, err := g.fresh(proposal(&op.Call))
		if err != nil {
			return err
		}
		*t, op.Block, submitted = f.token, f.block, true
	}
	if op.Kind == engine.Release { // perhaps of a lock with a handle in this process
		g.lines.Doubt(op.KeyText())
	}
	if op.group != g || op.Token != *t {
		op.Absent = 0 // it was of another lock
	}
	op.Token = *t
	op.compose(g, also)
	err := op.begin()
	if err == engine.ErrBusy || err == engine.ErrClosed {
		op.parts.Note(err)
		g.reportAttempt(ofOp, &op.Op, op.Key, err)
	}
	return err
}

// compose makes the parts: one in g and, if also is not nil, one there.
func (op *Op) compose(g, also *site) {
	if also == nil && op.group == g && !op.OfSet && op.parts.First() == &op.Call {
		return // they are those of the last Submit
	}
	op.group, op.OfSet = g, also != nil
	first := holding.Part{Call: &op.Call, Site: g}
	if also == nil {
		op.parts.Take(first)
		return
	}
	if op.second == nil {
		op.second = new(engine.Call)
	}
	op.parts.Take(first, holding.Part{Call: op.second, Site: also})
}

// begin submits an operation to its first group.
func (op *Op) begin() error {
	op.err = nil
	counted, underway := op.OfSet, op.group.cfg.Underway
	if counted {
		underway.Enter()
	}
	err := op.parts.Submit(0)
	if err != nil { // else it may be over already
		op.err = err
		if counted {
			underway.Leave()
		}
	}
	return err
}

// askNext asks the second group once the first has answered, and reports whether it did.
func (op *Op) askNext() bool {
	switch left := len(op.parts.Parts()) - len(op.parts.Asked()); {
	case left == 0 && op.OfSet: // both have answered
		op.Unreserve()
		return false
	case left == 0, op.Kind != engine.Release && op.Err != nil, !op.Reserve():
		return false
	}
	s := op.second
	if s.Token != op.Token {
		s.Absent = 0
	}
	s.Shared = op.Shared
	s.Kind, s.Key, s.TTL, s.Token, s.Tail, s.Block, s.OfSet, s.Done = op.Kind, op.Key, op.TTL, op.Token, op.Tail, op.Block, true, op.Done
	err := op.parts.Submit(1)
	if err == nil {
		return true
	}
	op.Unreserve()
	return false
}

// Cancel takes an operation back. It returns false if it is too late, or if op was
// not submitted to this group.
func (g *site) Cancel(op *Op) bool {
	if op.group != g || !g.engine.Cancel(&op.Op) && !op.cancelSecond() {
		return false
	}
	if op.OfSet {
		g.cfg.Underway.Leave()
	}
	g.reportAttempt(ofOp, &op.Op, op.Key, context.Canceled)
	return true
}

// cancelSecond takes an operation back from its second group.
func (op *Op) cancelSecond() bool {
	if all := op.parts.Parts(); len(all) == 1 || !all[1].Site.Engine().Cancel(&op.second.Op) {
		return false
	}
	if op.Kind == engine.Acquire {
		op.group.engine.Abandon(&op.Op)
	}
	op.Unreserve()
	return true
}

// Report reports the attempt of a complete operation. Its Done calls it before the operation is its user's again.
// Other callbacks may have come first, and have taken so long that no validity is left. It returns false if the
// operation goes on: in the second group, or again, after nothing but refusals of the number of its fencing token.
func (op *Op) Report() (ended bool) {
	if op.askNext() {
		return false
	}
	g, c := op.group, &op.parts
	op.decider, op.err = c.Result()
	if op.err == nil && op.Kind.HasTTL() && g.clock.Now() >= c.Until() {
		op.err = engine.ErrExpired
	}
	if op.err == nil && op.Kind == engine.Acquire && !c.Stands() {
		op.err = engine.ErrTaken
	}
	if op.err != nil {
		c.Rollback(op.err)
	}
	if op.OfSet {
		g.cfg.Underway.Leave()
	}
	c.Note(op.err)
	again := false
	switch {
	case op.Kind == engine.Acquire:
		if op.err == nil {
			c.Granted()
		} else {
			again, op.err = c.Again(op.err)
		}
	case op.Kind == engine.Release && op.err == nil: // it may be the lock of a holder in this process
		for _, p := range c.Parts() {
			groupOf(p).freedByOp(op.Key)
		}
	}
	if g.cfg.OnAttempt != nil { // the error may allocate
		op.Tally = op.decider.Tally
		g.reportAttempt(ofOp, &op.Op, op.Key, op.Result())
	}
	return !again || !op.repeat()
}

// freedByOp notes that an Op has released a lock.
func (g *site) freedByOp(key []byte) {
	if g.lines.Known() {
		g.lines.Freed(string(key), 0)
	}
}

// repeat submits an acquire again, with another token, and reports whether it did. To its user the operation is still
// under way, so no other submits it.
func (op *Op) repeat() bool {
	f, err := op.group.fresh(proposal(&op.Call))
	if err != nil || !op.Reserve() {
		return false
	}
	lost := op.err
	*op.holder, op.Token, op.Block = f.token, f.token, f.block
	if op.begin() != nil { // its user learns of the attempt made
		op.err = lost
		return false
	}
	return true
}

// Result returns the error of a complete operation, or nil.
func (op *Op) Result() error {
	if op.err == nil { // also where it was never submitted
		return nil
	}
	return op.parts.Explain(op.decider, op.err)
}

// Remaining is the validity left after an operation without an error, or 0.
func (op *Op) Remaining() time.Duration {
	if op.group == nil || op.err != nil {
		return 0
	}
	return op.group.left(op.parts.Until())
}

// Fence is the fencing token of an acquire without an error, or 0.
func (op *Op) Fence() uint64 {
	if op.Kind != engine.Acquire || op.err != nil {
		return 0
	}
	return uint64(op.Block.First)
}
