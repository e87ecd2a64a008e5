package group

import (
	"context"
	"errors"
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

// calls returns an operation of a kind on a lock, to be freed; or what is wrong with its
// arguments.
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
		c.each(func(one *engine.Call) { one.Tail = s.Tail(g.cfg.Holder) })
	}
	return c, err
}

// each calls f for each of the calls.
func (c *calls) each(f func(*engine.Call)) {
	if c.one != nil {
		f(c.one)
	}
	for _, one := range c.all {
		f(one)
	}
}

func (c *calls) free() { c.each(c.group.engine.Free) }

// first is the call for the first key.
func (c *calls) first() *engine.Call {
	if c.one != nil {
		return c.one
	}
	return c.all[0]
}

// prepare says which lock the calls are about, and whose end ends them.
func (c *calls) prepare(ctx context.Context, t token.Token, absent uint64) {
	c.each(func(one *engine.Call) {
		one.Watch(ctx)
		one.Token, one.Absent = t, absent
	})
}

// do makes the calls and returns the error of the operation, as the API shows it. It is
// unsent where no node has heard of it.
func (c *calls) do(ctx context.Context) (unsent bool, err error) {
	e := c.group.engine
	if c.one != nil {
		err = e.Do(ctx, c.one)
	} else {
		err = e.DoAll(ctx, c.all)
	}
	if err != nil {
		return err == engine.ErrBusy || err == engine.ErrClosed, err
	}
	return false, c.result()
}

// doWith is do for one key. The acquire of the first that waits for it is sent along.
func (c *calls) doWith(ctx context.Context, next *waiter) (unsent bool, err error) {
	err = c.group.engine.DoWith(ctx, c.one, next.call)
	if err != nil {
		return err == engine.ErrBusy || err == engine.ErrClosed, err
	}
	return false, c.result()
}

// result is nil if all calls have won. A lock of several keys is lost, or taken, if one
// of them is.
func (c *calls) result() (err error) {
	if c.one != nil {
		return c.group.errorOf(&c.one.Op)
	}
	for _, one := range c.all {
		err = engine.Joint(err, c.group.errorOf(&one.Op))
	}
	return err
}

// report reports the attempt, with the votes on the key that has decided it, and counts it if
// it has several keys. ctx is its caller's.
func (c *calls) report(ctx context.Context, err error) {
	if c.all != nil {
		c.group.engine.Note(c.first().Kind, bare(err))
	}
	if c.group.cfg.OnAttempt != nil {
		c.group.reportAttempt(ctx, &c.deciding(err).Op, string(c.first().Key), err)
	}
}

// deciding is the call that ended with err, the result of the whole; else the first.
func (c *calls) deciding(err error) *engine.Call {
	for _, one := range c.all {
		if one.Err != nil && one.Err == bare(err) {
			return one
		}
	}
	return c.first()
}

// bare is an error without its details, to be counted and compared.
func bare(err error) error {
	if errors.Is(err, engine.ErrNoQuorum) {
		return engine.ErrNoQuorum
	}
	return err
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
