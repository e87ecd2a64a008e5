package group

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/token"
)

// Op is an operation without a waiting caller. Its user sets Kind, Key, TTL and Done;
// Submit sets the rest.
type Op struct {
	engine.Op
	group    *Group // of the last Submit
	proposal fencing.Proposal
	holder   *token.Token // of an acquire: where its user finds the token
}

// ofOp is the context of an operation that is not waited for.
var ofOp context.Context

// Submit begins an operation that was reserved, on the lock of t. For an acquire it
// makes t a new token first.
func (g *Group) Submit(op *Op, t *token.Token) error {
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
	op.group, op.Token = g, *t
	err := g.engine.Submit(&op.Op)
	if err == engine.ErrBusy || err == engine.ErrClosed {
		g.reportAttempt(ofOp, &op.Op, op.Key, err)
	}
	return err
}

// Cancel takes an operation back. It returns false if it is too late, or if op was
// not submitted to this group.
func (g *Group) Cancel(op *Op) bool {
	if op.group != g || !g.engine.Cancel(&op.Op) {
		return false
	}
	g.reportAttempt(ofOp, &op.Op, op.Key, context.Canceled)
	return true
}

// Report reports the attempt of an operation that is complete. Its Done calls it
// before the operation is its user's again. Other callbacks may have come first, and
// have taken so long that no validity is left. It returns false if the operation is made
// again: it has met nothing but refusals of the number of its fencing token.
func (op *Op) Report() (ended bool) {
	g := op.group
	if op.Err == nil && op.Kind.HasTTL() && g.clock.Current() >= op.Until {
		g.engine.Late(&op.Op)
		op.Err = engine.ErrExpired
	}
	again := false
	if op.Kind == engine.Acquire {
		if op.Err == nil {
			g.fence.Granted(&op.Op)
		}
		again, op.Err = g.fence.Again(&op.proposal, op.Err, &op.Op)
	}
	if op.Kind == engine.Release && op.Err == nil && g.lines.Known() {
		g.lines.Freed(string(op.Key)) // it may be the lock of a holder in this process
	}
	if g.cfg.OnAttempt != nil { // the error may allocate
		g.reportAttempt(ofOp, &op.Op, op.Key, op.Result())
	}
	return !again || !op.repeat()
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
	if g.engine.Submit(&op.Op) != nil { // its user learns of the attempt that was made
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
	return op.group.Explain(&op.Op, op.Err)
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
