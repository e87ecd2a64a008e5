package group

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fencing"
)

// MaxKeys is how many keys AcquireAll takes.
const MaxKeys = 64

// checkKeys returns keys in their canonical order, which is the same for all clients: of
// two sets that overlap, the one whose commands a node sees first then wins all of it
// there.
func checkKeys(keys []string) ([]string, error) {
	switch n := len(keys); {
	case n == 0:
		return nil, engine.WrongArgument("AcquireAll was given no keys, 1 to %d are allowed", MaxKeys)
	case n > MaxKeys:
		return nil, engine.WrongArgument("AcquireAll was given %d keys, at most %d are allowed", n, MaxKeys)
	}
	keys = slices.Sorted(slices.Values(keys))
	for i := 1; i < len(keys); i++ {
		if keys[i] == keys[i-1] {
			return nil, engine.WrongArgument("AcquireAll was given %s twice", Quote(keys[i]))
		}
	}
	return keys, nil
}

// AcquireAll is Acquire for several keys, which become one lock: all or none. With once
// it makes one attempt.
func (g *Group) AcquireAll(ctx context.Context, ttl time.Duration, keys []string, once bool) (Handle, error) {
	ctx = orBackground(ctx)
	keys, err := checkKeys(keys)
	if err != nil {
		return Handle{}, err
	}
	own := g.wait(keys[0])
	if err := ctx.Err(); err != nil {
		if once {
			return Handle{}, err
		}
		return Handle{}, g.cutOff(ctx, &own)
	}
	s := state{key: keys[0]}
	if len(keys) > 1 {
		s.more = &more{keys: keys}
	}
	c, err := g.calls(engine.Acquire, &s, ttl)
	if err != nil {
		return Handle{}, err
	}
	defer c.free()
	s.ttl = c.first().TTL
	attempt := func() (Handle, error) { return g.attemptAgain(ctx, &c, s) }
	if once {
		return attempt()
	}
	h, err := g.attempts(ctx, c.first(), &own, attempt)
	return g.acquired(ctx, &own, h, err)
}

// attemptAgain is attemptAll, and again where nodes have refused only the number of a token.
// One token stands for all keys.
func (g *Group) attemptAgain(ctx context.Context, c *calls, s state) (h Handle, err error) {
	p := &c.first().Proposal
	for range maxAgain {
		var b fencing.Block
		if g.fence.on {
			if b, err = g.fence.propose(p); err != nil {
				return Handle{}, err
			}
			c.each(func(one *engine.Call) { one.Block = b })
		}
		if h, err = g.attemptAll(ctx, c, s); err == nil {
			h.fence = g.fence.grant(b.First)
			break
		}
		if !g.fence.on || err != engine.ErrTaken && !errors.Is(err, engine.ErrNoQuorum) {
			break // not sent, or left
		}
		again, final := true, error(nil)
		c.each(func(one *engine.Call) {
			if one.Err == nil {
				return
			}
			a, told := g.fence.learn(&one.Op, p, one.Err)
			if again = again && a; told != one.Err {
				final = told
			}
		})
		if final != nil {
			return h, final
		}
		if !again {
			break
		}
	}
	return h, err
}

// attemptAll is one attempt, with one token for all keys. Where one key is refused, the
// others are released; and all of them, if user code panics: the context or the hook.
func (g *Group) attemptAll(ctx context.Context, c *calls, s state) (h Handle, err error) {
	if err := g.newToken(&s.token); err != nil {
		return Handle{}, err
	}
	c.prepare(ctx, s.token, 0)
	asked, panicked := true, true
	defer func() {
		switch {
		case !asked:
		case panicked:
			c.forgo(context.Canceled)
		case err != nil:
			c.forgo(err)
		}
	}()
	unsent, err := c.do(ctx)
	asked = !unsent
	if s.until = c.first().Until; err == nil && g.clock.Now() >= s.until {
		err = engine.ErrExpired
	}
	c.report(ctx, err)
	panicked = false
	if err != nil {
		return Handle{}, err
	}
	absent := ^uint64(0)
	c.each(func(one *engine.Call) { absent &= one.Absent })
	return g.handle(s, absent), nil
}

// forgo releases what was acquired, since err is the result of the whole.
func (c *calls) forgo(err error) {
	err = bare(err)
	c.each(func(one *engine.Call) {
		if !one.Over() && one.Err == nil {
			c.group.engine.Forgo(&one.Op, err)
		}
	})
}
