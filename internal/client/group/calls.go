package group

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

// Calls is one operation on a lock: a call for each of its keys.
type Calls struct {
	home  *Group // counts and reports the whole
	one   *engine.Call
	all   []*engine.Call // in place of one, for several keys
	parts []part         // of all, in that order
	asked int            // how many parts the nodes were asked for; of a release or extend all
	vain  *engine.Op     // of a group without a quorum, for which no other was asked; or nil
}

// part is the calls of one operation for the keys in one group.
type part struct {
	site  *Group
	calls []*engine.Call
}

// newCalls returns an operation of a kind on a lock, to be freed; or an error if the arguments are wrong.
// tail is what follows the token in the values of the client.
func newCalls(home *Group, kind engine.Kind, s *holding.State, ttl time.Duration, tail string) (c Calls, err error) {
	c.home = home
	if s.Several() == nil {
		if c.one, err = home.engine.Call(kind, s.Key, ttl); err == nil {
			c.one.Tail = s.Tail(tail)
		}
		return c, err
	}
	for i, key := range s.More.Keys {
		at := s.More.Site(i, home).(*Group)
		one, err := at.engine.Call(kind, key, ttl)
		if err != nil {
			c.Free()
			return c, err
		}
		one.Part, one.Tail = true, s.Tail(tail)
		c.all = append(c.all, one)
		if n := len(c.parts); n == 0 || c.parts[n-1].site != at {
			c.parts = append(c.parts, part{site: at})
		}
		p := &c.parts[len(c.parts)-1]
		p.calls = append(p.calls, one)
	}
	c.asked = len(c.parts)
	return c, nil
}

// List is the calls, in the order of the keys.
func (c *Calls) List() []*engine.Call {
	if c.one != nil {
		return []*engine.Call{c.one} // on the stack of the caller
	}
	return c.all
}

// sent is those of the calls that nodes were asked for.
func (c *Calls) sent() []*engine.Call {
	n := 0
	for _, p := range c.parts[:c.asked] {
		n += len(p.calls)
	}
	return c.all[:n]
}

// Free gives the calls back.
func (c *Calls) Free() {
	if c.one != nil {
		c.home.engine.Free(c.one)
	}
	for _, p := range c.parts {
		for _, one := range p.calls {
			p.site.engine.Free(one)
		}
	}
}

// First is the call for the first key.
func (c *Calls) First() *engine.Call {
	if c.one != nil {
		return c.one
	}
	return c.all[0]
}

// Watch has the end of ctx end the calls.
func (c *Calls) Watch(ctx context.Context) {
	for _, one := range c.List() {
		one.Watch(ctx)
	}
}

// About sets the lock that the calls are about. The nodes of absent do not have its key; b is of an
// acquire that is fenced.
func (c *Calls) About(t token.Token, b fencing.Block, absent quorum.Set) {
	for _, one := range c.List() {
		one.Token, one.Block, one.Absent = t, b, absent
	}
}

// Do makes the calls, and returns their outcome. What was granted is released if the context
// panics, which is user code.
func (c *Calls) Do(ctx context.Context) (op *engine.Op, unsent bool, err error) {
	if c.one != nil {
		return c.outcome(c.home.engine.Do(ctx, c.one))
	}
	if c.all[0].Kind != engine.Acquire {
		return c.outcome(c.together(ctx))
	}
	panicked := true
	defer func() {
		if panicked {
			c.Rollback(context.Canceled)
		}
	}()
	err = c.inTurn(ctx)
	panicked = false
	return c.outcome(err)
}

// inTurn asks the groups one after another: of two sets that overlap, the one that is first where
// they meet first wins, and the other asks no further. A group that is known to have no quorum comes before
// all: others would lack the keys of the rest for as long as these are held in vain.
func (c *Calls) inTurn(ctx context.Context) error {
	c.asked, c.vain = 0, nil
	for _, p := range c.parts {
		if !p.site.engine.LacksQuorum() {
			continue
		}
		if err := p.site.engine.Begin(p.calls[:1]); err != nil {
			return err
		}
		if err := engine.AwaitAll(ctx, p.calls[:1]); err != nil {
			return err
		}
		if c.vain = &p.calls[0].Op; c.vain.Err != nil {
			return nil
		}
		p.site.engine.Forgo(c.vain, context.Canceled) // it has one again
		c.vain = nil
	}
	for c.asked < len(c.parts) {
		p := &c.parts[c.asked]
		if err := p.site.engine.Begin(p.calls); err != nil {
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
func (c *Calls) together(ctx context.Context) (err error) {
	for c.asked = 0; err == nil && c.asked < len(c.parts); {
		p := &c.parts[c.asked]
		if err = p.site.engine.Begin(p.calls); err == nil {
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

// DoWith is Do for one key. The acquire of the first that waits for it is sent along.
func (c *Calls) DoWith(ctx context.Context, next *engine.Call) (op *engine.Op, unsent bool, err error) {
	return c.outcome(c.home.engine.DoWith(ctx, c.one, next))
}

// Await is Do for an acquire of one key that was sent along with a release.
func (c *Calls) Await(ctx context.Context) (op *engine.Op, unsent bool, err error) {
	return c.outcome(c.one.Ended(ctx))
}

// Leave sends releases for which no caller waits, because its context has ended.
func (c *Calls) Leave() (op *engine.Op, unsent bool, err error) {
	if c.one != nil {
		return c.outcome(c.home.engine.Leave(c.one))
	}
	for c.asked = 0; c.asked < len(c.parts) && err == nil; {
		p := c.parts[c.asked]
		if err = p.site.engine.Leave(p.calls...); err == nil {
			c.asked++
		}
	}
	return &c.First().Op, c.asked == 0, err
}

// Discard is Leave for a caller that does not look at the result, which is counted when the
// first key has one. At once, the releases are sent when it returns, or follow the batch under way; else they may
// be sent a little later, with the next operation.
func (c *Calls) Discard(along *engine.Call, atOnce bool) (err error) {
	c.First().Part = false
	if c.one != nil {
		err = c.home.engine.Discard(along, c.one)
		c.home.drive(atOnce)
	}
	for _, p := range c.parts {
		err = cmp.Or(p.site.engine.Discard(nil, p.calls...), err)
		p.site.drive(atOnce)
	}
	return err
}

// drive sends what is queued, or leaves it to the next operation.
func (g *Group) drive(atOnce bool) {
	if atOnce {
		g.engine.Drive()
	} else {
		g.engine.DriveSoon()
	}
}

// Rollback releases what was acquired, since err is the result of the whole.
func (c *Calls) Rollback(err error) {
	if c.one != nil && !c.one.Over() && c.one.Err == nil {
		c.home.engine.Forgo(&c.one.Op, err)
	}
	for _, p := range c.parts[:c.asked] {
		for _, one := range p.calls {
			if !one.Over() && one.Err == nil {
				p.site.engine.Forgo(&one.Op, err)
			}
		}
	}
}
