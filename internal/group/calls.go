package group

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/holding"
	"github.com/redlock-go/redlock/internal/token"
)

// calls is one operation on a lock: a call for each of its keys. With one key, which is
// the rule, it allocates nothing.
type calls struct {
	group *Group
	one   *engine.Call
	all   []*engine.Call // in place of one, for several keys
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
	if keys := s.Several(); keys == nil {
		c.one, err = g.engine.Call(kind, s.Key, ttl)
	} else {
		for _, key := range keys {
			one, callErr := g.engine.Call(kind, key, ttl)
			if err = callErr; err != nil {
				c.free()
				return c, err
			}
			one.Part = true
			c.all = append(c.all, one)
		}
	}
	if err == nil {
		for _, one := range c.list() {
			one.Tail = s.Tail(g.cfg.tail)
		}
	}
	return c, err
}

// list is the calls, in the order of the keys.
func (c *calls) list() []*engine.Call {
	if c.one != nil {
		return []*engine.Call{c.one} // on the stack of the caller
	}
	return c.all
}

// ops is the operation of each of the calls.
func (c *calls) ops() []*engine.Op {
	if c.one != nil {
		return []*engine.Op{&c.one.Op} // on the stack of the caller
	}
	return c.several()
}

func (c *calls) several() (ops []*engine.Op) {
	for _, one := range c.all {
		ops = append(ops, &one.Op)
	}
	return ops
}

func (c *calls) free() {
	for _, one := range c.list() {
		c.group.engine.Free(one)
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
	panicked := true
	defer func() {
		if panicked && c.all[0].Kind == engine.Acquire {
			c.rollback(context.Canceled)
		}
	}()
	err = c.group.engine.DoAll(ctx, c.all)
	panicked = false
	return c.outcome(err)
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
		return op, ended == engine.ErrBusy || ended == engine.ErrClosed, ended
	}
	for _, one := range c.list() {
		if next := engine.Joint(err, one.Err); next != err {
			op, err = &one.Op, next
		}
	}
	return op, false, err
}

// report counts and reports the attempt, and returns its error as the API shows it. op has
// decided it; ctx is its caller's.
func (c *calls) report(ctx context.Context, op *engine.Op, err error) error {
	c.note(err)
	err = c.group.explain(op, err)
	c.group.reportAttempt(ctx, op, c.first().Key, err)
	return err
}

// note counts the result of a lock of several keys.
func (c *calls) note(err error) {
	if c.all != nil {
		c.group.engine.Note(c.all[0].Kind, err)
	}
}

// absent is the nodes that have none of the keys.
func (c *calls) absent() uint64 {
	absent := ^uint64(0)
	for _, one := range c.list() {
		absent &= one.Absent
	}
	return absent
}

// refused is the first call that nodes have refused since its key was taken, or nil.
func (c *calls) refused() *engine.Call {
	for _, one := range c.list() {
		if one.Err == engine.ErrTaken && !one.Over() {
			return one
		}
	}
	return nil
}

// rollback releases what was acquired, since err is the result of the whole.
func (c *calls) rollback(err error) {
	for _, one := range c.list() {
		if !one.Over() && one.Err == nil {
			c.group.engine.Forgo(&one.Op, err)
		}
	}
}

// discard is leave for a caller that does not look at the result, which is counted when the
// first key has one.
func (c *calls) discard() {
	c.first().Part = false
	c.group.engine.Discard(c.list()...)
}
