package group

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/token"
)

// Op is an operation without a waiting caller. Its user sets Kind, Key, TTL and Done;
// Submit sets the rest.
type Op struct {
	engine.Op
	group    *Group // of the last Submit
	decider  *Group // the one that the result is of
	proposal fencing.Proposal
	holder   *token.Token // of an acquire: where its user finds the token
	second   *second      // in another group, or nil
}

// ofOp is the context of an operation that is not waited for.
var ofOp context.Context

// Submit begins an operation that was reserved, on the lock of t, in g and, where the key moves, in
// another group after it. For an acquire it makes t a new token first.
func (g *Group) Submit(op *Op, t *token.Token, also *Group) error {
	if op.Kind.Reads() {
		op.Kind = 0 // and is refused as one that does not exist
	}
	op.Tail = g.cfg.tail
	if op.Kind == engine.Acquire {
		submitted := false
		defer func() {
			if !submitted { // Rand is user code: it may panic
				op.Unreserve()
			}
		}()
		op.proposal, op.holder = fencing.Proposal{}, t
		f, err := g.fresh(&op.proposal)
		if err != nil {
			return err
		}
		*t, op.Block, submitted = f.token, f.block, true
	}
	if op.group != g || op.Token != *t {
		op.Absent = 0 // it was of another lock
	}
	op.setSecond(also)
	op.Part = also != nil
	op.Token = *t
	err := op.begin(g)
	if err == engine.ErrBusy || err == engine.ErrClosed {
		if op.Part {
			g.engine.Note(op.Kind, err)
		}
		g.reportAttempt(ofOp, &op.Op, op.Key, err)
	}
	return err
}

// begin submits an operation to its first group.
func (op *Op) begin(g *Group) error {
	op.group, op.decider = g, g
	if s := op.moves(); s != nil {
		s.joined = false
	}
	return g.engine.Submit(&op.Op)
}

// Cancel takes an operation back. It returns false if it is too late, or if op was
// not submitted to this group.
func (g *Group) Cancel(op *Op) bool {
	if op.group != g || !g.engine.Cancel(&op.Op) && !op.moves().cancel() {
		return false
	}
	g.reportAttempt(ofOp, &op.Op, op.Key, context.Canceled)
	return true
}

// Report reports the attempt of an operation that is complete. Its Done calls it
// before the operation is its user's again. Other callbacks may have come first, and
// have taken so long that no validity is left. It returns false if the operation goes on: in the
// second group, or again, since it has met nothing but refusals of the number of its fencing token.
func (op *Op) Report() (ended bool) {
	if op.goesOn() {
		return false
	}
	g, s := op.group, op.moves()
	if op.Err == nil && op.Kind.HasTTL() && g.clock.Now() >= op.Until {
		if g.engine.Late(&op.Op); s != nil {
			s.group.engine.Late(&s.Op)
		}
		op.Err = engine.ErrExpired
	}
	if op.Part {
		g.engine.Note(op.Kind, op.Err)
	}
	again := false
	if op.Kind == engine.Acquire {
		if op.Err == nil {
			if g.fence.Granted(&op.Op); s != nil {
				s.group.fence.Granted(&s.Op)
			}
		}
		again, op.Err = op.decider.fence.Again(&op.proposal, op.Err, &op.Op)
	}
	if op.Kind == engine.Release && op.Err == nil { // it may be the lock of a holder in this process
		if g.freedByOp(op.Key); s != nil {
			s.group.freedByOp(op.Key)
		}
	}
	if g.cfg.OnAttempt != nil { // the error may allocate
		g.reportAttempt(ofOp, &op.Op, op.Key, op.Result())
	}
	return !again || !op.repeat()
}

// freedByOp notes that an Op has released a lock.
func (g *Group) freedByOp(key []byte) {
	if g.lines.Known() {
		g.lines.Freed(string(key))
	}
}

// repeat submits an acquire again, with another token, and reports whether it did. No other
// does: to its user the operation is still under way.
func (op *Op) repeat() bool {
	g := op.group
	f, err := g.fresh(&op.proposal)
	if err != nil || !op.Reserve() {
		return false
	}
	lost := op.Err
	*op.holder, op.Token, op.Block = f.token, f.token, f.block
	if op.begin(g) != nil { // its user learns of the attempt that was made
		op.Err = lost
		return false
	}
	return true
}

// Result returns the error of an operation that is complete, or nil.
func (op *Op) Result() error {
	if op.Err == nil { // also where it was never submitted
		return nil
	}
	return op.decider.Explain(&op.Op, op.Err)
}

// Remaining is the validity that is left after an operation without an error, or 0.
func (op *Op) Remaining() time.Duration {
	if op.group == nil || op.Err != nil {
		return 0
	}
	return op.group.left(op.Until)
}

// Fence is the fencing token of an acquire without an error, or 0.
func (op *Op) Fence() uint64 {
	if op.Kind != engine.Acquire || op.Err != nil {
		return 0
	}
	return op.Block.First
}
