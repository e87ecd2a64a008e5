package client

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/token"
)

// Op is an operation without a waiting caller. Its user sets Kind, Key, TTL and Done, and the value of a lock that it has;
// Submit sets the rest.
//
// A moving key is in a second group, asked after the first, unless that has denied an acquire. To its user the
// operation is under way until both have ended.
type Op struct {
	engine.Call
	Within  time.Duration     // from Submit to Done; 0: without a bound of its own
	User    engine.Completion // notified of the end
	group   *site             // of the last Submit
	second  *engine.Call      // where the key is in two groups
	decider *engine.Call      // of the result
	err     error             // the result
}

// OpCell has an Op from its first use on, and is printed as an address. It must not be copied.
type OpCell struct{ p atomic.Pointer[Op] }

// Get is the Op. Any number of goroutines may call it.
func (c *OpCell) Get() *Op {
	if c.p.Load() == nil {
		c.p.CompareAndSwap(nil, new(Op))
	}
	return c.p.Load()
}

// Value is what the lock has at its key, or "".
func (op *Op) Value() string { return token.Join(op.Token, op.Tail) }

// SetValue makes an operation one on the lock with a value.
func (op *Op) SetValue(value string) {
	t, tail := token.Split(value)
	if t != op.Token || tail != op.Tail {
		op.Absent = 0 // it was of another lock
	}
	op.Token, op.Tail = t, tail
}

// Submit begins a reserved operation. An acquire gets a new token, and the name of the options.
func (c *Client) Submit(op *Op) error {
	err := c.settings.refusal(false)
	if err == nil && (op.Within < 0 || op.Within > MaxTTL) {
		err = WrongArgument("Within is %v, want 0 (no bound) to %v", op.Within, MaxTTL)
	}
	if err != nil {
		op.Unreserve()
		return err
	}
	g, also := c.of(op.KeyText())
	if op.Kind == engine.Acquire {
		op.Proposal = fencing.Proposal{}
		f, err := g.fresh(&op.Proposal, op.Shared)
		if err != nil {
			op.Unreserve()
			return err
		}
		op.Token, op.Tail, op.Block = f.token, c.settings.tail, f.block
	} else if length := len(op.Tail); op.Token == (token.Token{}) && (length == 0 || length > maxValue) {
		op.Unreserve()
		return wrongToken(length)
	}
	if op.Kind == engine.Release { // perhaps of a lock with a handle in this process
		g.lines.Doubt(op.KeyText())
	}
	if op.group != g {
		op.Absent = 0
	}
	op.group, op.On, op.And, op.OfSet = g, g.Engine, nil, also != nil
	if also != nil {
		if op.second == nil {
			op.second = new(engine.Call)
		}
		op.And, op.second.On = op.second, also.Engine
	}
	var limit engine.Limit
	if op.Within > 0 {
		limit.At = g.clock.Now().Add(op.Within)
	}
	op.Watch(limit)
	err = op.begin()
	if err == engine.ErrBusy || err == engine.ErrClosed {
		op.Note(err)
		g.reportAttempt(noCaller, &op.Op, op.Key, err)
	}
	return err
}

// begin submits an operation to its first group.
func (op *Op) begin() error {
	if s := op.And; s != nil {
		if s.Token != op.Token {
			s.Absent = 0
		}
		s.Kind, s.Key, s.TTL, s.Token, s.Tail, s.Block, s.OfSet, s.Done = op.Kind, op.Key, op.TTL, op.Token, op.Tail, op.Block, true, op.Done
		s.Shared, s.Asked = op.Shared, false
		op.group.Config.Underway.Enter()
	}
	op.Asked, op.decider, op.err = false, &op.Call, nil
	_, err := op.Call.Submit()
	if err != nil { // else it may be over already
		op.err = err
		op.leave()
	}
	return err
}

// leave notes that nothing of an operation is under way.
func (op *Op) leave() {
	if op.OfSet {
		op.group.Config.Underway.Leave()
	}
}

// Cancel takes an operation back. It returns false if it is too late, or if op was not submitted to c.
func (c *Client) Cancel(op *Op) bool {
	switch g := op.group; {
	case !slices.Contains(c.groups, g):
		return false
	case g.Engine.Cancel(&op.Op):
	case op.And == nil, !op.And.On.Cancel(&op.And.Op):
		return false
	default: // it was in its second group
		if op.Kind == engine.Acquire {
			g.Engine.Abandon(&op.Op)
		}
		op.Unreserve()
	}
	op.leave()
	op.group.reportAttempt(noCaller, &op.Op, op.Key, context.Canceled)
	return true
}

// Complete implements engine.Completion.
func (op *Op) Complete(*engine.Op) {
	if op.report() {
		op.User.Complete(&op.Op)
	}
}

// report reports the attempt of a complete operation, before that is its user's again. Other callbacks may have come
// first, and have taken so long that no validity is left. It returns false if the operation goes on: in the second
// group, or again, after nothing but denials of the number of its fencing token.
func (op *Op) report() (ended bool) {
	var unasked error
	if op.OfSet {
		op.Reserve() // unless the second group was asked before
		var asks bool
		asks, unasked = op.Call.Submit()
		if asks {
			return false
		}
		op.Unreserve()
	}
	g := op.group
	op.decider, op.err = op.Outcome(unasked)
	if op.err == nil && op.Kind.HasTTL() && g.clock.Now() >= op.Least() {
		op.err = engine.ErrExpired
	}
	if op.err == nil && op.Kind == engine.Acquire && !stands(&op.Call) {
		op.err = engine.ErrTaken
	}
	if op.err != nil {
		op.Rollback(op.err)
	}
	op.leave()
	op.Note(op.err)
	again := false
	switch {
	case op.Kind == engine.Acquire && op.err == nil:
		granted(&op.Call)
	case op.Kind == engine.Acquire:
		again, op.err = siteOf(op.decider.On).Fence.Again(&op.Call, op.err)
	case op.Kind == engine.Release && op.err == nil && !op.Shared: // it may be the lock of a holder in this process
		op.Each(func(c *engine.Call) {
			if l := siteOf(c.On).lines; l.HasDesks() {
				l.Freed(string(op.Key), 0)
			}
		})
	}
	if g.Config.OnAttempt != nil { // the error may allocate
		op.Tally = op.decider.Tally
		g.reportAttempt(noCaller, &op.Op, op.Key, op.Result())
	}
	return !again || !op.repeat()
}

// repeat submits an acquire again, with another token, and reports whether it did. To its user the operation is still
// under way, so no other submits it.
func (op *Op) repeat() bool {
	f, err := op.group.fresh(&op.Proposal, op.Shared)
	if err != nil || !op.Reserve() {
		return false
	}
	lost := op.err
	op.Token, op.Block = f.token, f.block
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
	return op.decider.Explain(op.err)
}

// Remaining is the validity left after an operation without an error, or 0.
func (op *Op) Remaining() time.Duration {
	if op.group == nil || op.err != nil {
		return 0
	}
	return op.group.left(op.Least())
}

// Fence is the fencing token of an acquire without an error, or 0.
func (op *Op) Fence() uint64 {
	if op.Kind != engine.Acquire || op.err != nil {
		return 0
	}
	return uint64(op.Block.First)
}
