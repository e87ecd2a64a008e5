package group

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/holding"
	"github.com/redlock-go/redlock/internal/token"
)

// calls is one operation on a lock: a call for each of its keys. With one key, which is
// the rule, it allocates nothing.
type calls struct {
	group *Group // counts and reports the whole
	one   *engine.Call
	all   []*engine.Call // in place of one, for several keys
	parts []part         // of all, in that order
	asked int            // how many parts the nodes were asked for; of a release or extend all
}

// part is the calls of one operation for the keys in one group.
type part struct {
	group *Group
	calls []*engine.Call
}

// fresh is what an acquire needs that no other had.
type fresh struct {
	token token.Token
	block fencing.Block // where acquires are fenced
}

// fresh makes what the next attempt of an acquire needs. Rand and FenceClock are user code, which
// may panic.
func (g *Group) fresh(p *fencing.Proposal) (f fresh, err error) {
	if err := f.token.Fill(g.cfg.Rand); err != nil {
		return fresh{}, fmt.Errorf("redlock: %w", err)
	}
	if err := g.fence.Propose(&f.block, p); err != nil {
		return fresh{}, err
	}
	return f, nil
}

// calls returns an operation of a kind on a lock, to be freed; or an error if
// the arguments are wrong.
func (g *Group) calls(kind engine.Kind, s *holding.State, ttl time.Duration) (c calls, err error) {
	c.group = g
	if s.Several() == nil {
		if c.one, err = g.engine.Call(kind, s.Key, ttl); err == nil {
			c.one.Tail = s.Tail(g.cfg.tail)
		}
		return c, err
	}
	for i, key := range s.More.Keys {
		at := g.at(s.More, i)
		one, err := at.engine.Call(kind, key, ttl)
		if err != nil {
			c.free()
			return c, err
		}
		one.Part, one.Tail = true, s.Tail(g.cfg.tail)
		c.all = append(c.all, one)
		if n := len(c.parts); n == 0 || c.parts[n-1].group != at {
			c.parts = append(c.parts, part{group: at})
		}
		p := &c.parts[len(c.parts)-1]
		p.calls = append(p.calls, one)
	}
	c.asked = len(c.parts)
	return c, nil
}

// list is the calls, in the order of the keys.
func (c *calls) list() []*engine.Call {
	if c.one != nil {
		return []*engine.Call{c.one} // on the stack of the caller
	}
	return c.all
}

// sent is those of the calls that nodes were asked for.
func (c *calls) sent() []*engine.Call {
	n := 0
	for _, p := range c.parts[:c.asked] {
		n += len(p.calls)
	}
	return c.all[:n]
}

func (c *calls) free() {
	if c.one != nil {
		c.group.engine.Free(c.one)
	}
	for _, p := range c.parts {
		for _, one := range p.calls {
			p.group.engine.Free(one)
		}
	}
}

// first is the call for the first key.
func (c *calls) first() *engine.Call {
	if c.one != nil {
		return c.one
	}
	return c.all[0]
}

// prepare sets the lock that the calls are about, and has the end of ctx end them.
func (c *calls) prepare(ctx context.Context, t token.Token, absent uint64) {
	for _, one := range c.list() {
		one.Watch(ctx)
		one.Token, one.Absent = t, absent
	}
}

// do makes the calls, and returns their outcome. What was granted is released if the context
// panics, which is user code.
func (c *calls) do(ctx context.Context) (op *engine.Op, unsent bool, err error) {
	if c.one != nil {
		return c.outcome(c.group.engine.Do(ctx, c.one))
	}
	if c.all[0].Kind != engine.Acquire {
		return c.outcome(c.together(ctx))
	}
	panicked := true
	defer func() {
		if panicked {
			c.rollback(context.Canceled)
		}
	}()
	err = c.inTurn(ctx)
	panicked = false
	return c.outcome(err)
}

// inTurn asks the groups one after another, in the order that is the same for all clients: of two
// sets that overlap, the one that is first where they meet first wins, and the other asks no
// further.
func (c *calls) inTurn(ctx context.Context) error {
	for c.asked = 0; c.asked < len(c.parts); {
		p := &c.parts[c.asked]
		if err := p.group.engine.Begin(p.calls); err != nil {
			return err
		}
		c.asked++
		if err := engine.AwaitAll(ctx, p.calls); err != nil {
			return err
		}
		if slices.ContainsFunc(p.calls, func(one *engine.Call) bool { return one.Err != nil }) {
			return nil
		}
	}
	return nil
}

// together asks all groups at once. If one cannot be asked, those before it are.
func (c *calls) together(ctx context.Context) (err error) {
	for c.asked = 0; err == nil && c.asked < len(c.parts); {
		p := &c.parts[c.asked]
		if err = p.group.engine.Begin(p.calls); err == nil {
			c.asked++
		}
	}
	for _, p := range c.parts[:c.asked] {
		if ended := engine.AwaitAll(ctx, p.calls); err == nil {
			err = ended
		}
	}
	return err
}

// doWith is do for one key. The acquire of the first that waits for it is sent along.
func (c *calls) doWith(ctx context.Context, next *engine.Call) (op *engine.Op, unsent bool, err error) {
	return c.outcome(c.group.engine.DoWith(ctx, c.one, next))
}

// outcome returns the error of the whole, and the operation that decides it: a lock of
// several keys is lost, or taken, if one of them is. An error of the call itself comes first;
// unsent, no node has heard of it.
func (c *calls) outcome(ended error) (op *engine.Op, unsent bool, err error) {
	op = &c.first().Op
	if ended != nil {
		return op, c.asked == 0 && (ended == engine.ErrBusy || ended == engine.ErrClosed), ended
	}
	if c.one != nil {
		return op, false, op.Err
	}
	for _, one := range c.sent() {
		if next := engine.Joint(err, one.Err); next != err {
			op, err = &one.Op, next
		}
	}
	return op, false, err
}

// groupOf is the group of an operation among the calls.
func (c *calls) groupOf(op *engine.Op) *Group {
	for _, p := range c.parts {
		if slices.ContainsFunc(p.calls, func(one *engine.Call) bool { return &one.Op == op }) {
			return p.group
		}
	}
	return c.group
}

// report counts and reports the attempt, and returns its error as the API shows it. op has
// decided it; ctx is its caller's.
func (c *calls) report(ctx context.Context, op *engine.Op, err error) error {
	c.note(err)
	err = c.groupOf(op).Explain(op, err)
	c.group.reportAttempt(ctx, op, c.first().Key, err)
	return err
}

// note counts the result of a lock of several keys.
func (c *calls) note(err error) {
	if c.all != nil {
		c.group.engine.Note(c.all[0].Kind, err)
	}
}

// until is when the validity of a lock ends that was acquired.
func (c *calls) until() time.Duration {
	if c.one != nil {
		return c.one.Until
	}
	least := never
	for _, one := range c.all {
		least = min(least, one.Until)
	}
	return least
}

// absent is the nodes that have none of the keys. Nodes of several groups have no common numbers.
func (c *calls) absent() uint64 {
	if c.one != nil {
		return c.one.Absent
	}
	if len(c.parts) > 1 {
		return 0
	}
	absent := ^uint64(0)
	for _, one := range c.all {
		absent &= one.Absent
	}
	return absent
}

// granted reports to the fences which nodes have granted an acquire.
func (c *calls) granted() {
	if c.one != nil {
		c.group.fence.Granted(&c.one.Op)
	}
	for _, p := range c.parts {
		p.group.fence.Granted(p.ops()...)
	}
}

// again reports whether an acquire that has ended with err is to be made again at once, as the
// fence of the group decides that was asked last. Else it returns the error that is to be reported.
func (c *calls) again(err error) (bool, error) {
	proposal := &c.first().Proposal
	if c.one != nil {
		return c.group.fence.Again(proposal, err, &c.one.Op)
	}
	if c.asked == 0 {
		return false, err
	}
	p := c.parts[c.asked-1]
	return p.group.fence.Again(proposal, err, p.ops()...)
}

// ops is the operation of each call, where acquires are fenced.
func (p part) ops() (ops []*engine.Op) {
	if p.group.fence != nil {
		for _, one := range p.calls {
			ops = append(ops, &one.Op)
		}
	}
	return ops
}

// refused is the place of the first key that nodes have refused since it was taken, or -1.
func (c *calls) refused() int {
	return slices.IndexFunc(c.sent(), func(one *engine.Call) bool { return one.Err == engine.ErrTaken && !one.Over() })
}

// rollback releases what was acquired, since err is the result of the whole.
func (c *calls) rollback(err error) {
	if c.one != nil && !c.one.Over() && c.one.Err == nil {
		c.group.engine.Forgo(&c.one.Op, err)
	}
	for _, p := range c.parts[:c.asked] {
		for _, one := range p.calls {
			if !one.Over() && one.Err == nil {
				p.group.engine.Forgo(&one.Op, err)
			}
		}
	}
}

// leave sends releases for which no caller waits, because its context has ended.
func (c *calls) leave() (op *engine.Op, unsent bool, err error) {
	if c.one != nil {
		return c.outcome(c.group.engine.Leave(c.one))
	}
	for c.asked = 0; c.asked < len(c.parts) && err == nil; {
		p := c.parts[c.asked]
		if err = p.group.engine.Leave(p.calls...); err == nil {
			c.asked++
		}
	}
	return &c.first().Op, c.asked == 0, err
}

// discard is leave for a caller that does not look at the result, which is counted when the
// first key has one.
func (c *calls) discard() {
	c.first().Part = false
	if c.one != nil {
		c.group.engine.Discard(c.one)
		c.group.engine.DriveSoon()
	}
	for _, p := range c.parts {
		p.group.engine.Discard(p.calls...)
		p.group.engine.DriveSoon()
	}
}
