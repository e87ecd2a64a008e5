package group

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
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
		for one := range c.each {
			one.Tail = s.Tail(g.cfg.tail)
		}
	}
	return c, err
}

// each yields each of the calls.
func (c *calls) each(yield func(*engine.Call) bool) {
	if c.one != nil {
		yield(c.one)
		return
	}
	for _, one := range c.all {
		if !yield(one) {
			return
		}
	}
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
	for one := range c.each {
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
	for one := range c.each {
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
	for one := range c.each {
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
	if c.group.cfg.OnAttempt != nil {
		c.group.reportAttempt(ctx, op, string(c.first().Key), err)
	}
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
	for one := range c.each {
		absent &= one.Absent
	}
	return absent
}

// refused is the first call that nodes have refused since its key was taken, or nil.
func (c *calls) refused() *engine.Call {
	for one := range c.each {
		if one.Err == engine.ErrTaken && !one.Over() {
			return one
		}
	}
	return nil
}

// rollback releases what was acquired, since err is the result of the whole.
func (c *calls) rollback(err error) {
	for one := range c.each {
		if !one.Over() && one.Err == nil {
			c.group.engine.Forgo(&one.Op, err)
		}
	}
}

// leave sends the releases of a caller that does not wait for them, because its context has
// ended: all of them, or none.
func (c *calls) leave() error {
	if c.one != nil {
		return c.group.engine.Leave(c.one)
	}
	return c.group.engine.Leave(c.all...)
}

// discard is leave for a caller that does not look at the result, which is counted when the
// first key has one.
func (c *calls) discard() {
	if c.one != nil {
		c.group.engine.Discard(c.one)
		return
	}
	c.all[0].Part = false
	c.group.engine.Discard(c.all...)
}
