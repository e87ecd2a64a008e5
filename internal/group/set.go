package group

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/holding"
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
	if len(keys) == 1 {
		if once {
			return g.TryAcquire(ctx, keys[0], ttl)
		}
		return g.Acquire(ctx, keys[0], ttl)
	}
	if n, most := len(keys), g.cfg.Engine.MaxWaiting; n > most {
		return Handle{}, engine.WrongArgument("AcquireAll was given %d keys, and MaxWaiting is %d: raise that", n, most)
	}
	w := g.wait(keys[0])
	if err := ctx.Err(); err != nil {
		if once {
			return Handle{}, err
		}
		return Handle{}, g.cutOff(ctx, &w)
	}
	s := holding.State{Key: keys[0], More: &holding.More{Keys: keys}}
	c, err := g.calls(engine.Acquire, &s, ttl)
	if err != nil {
		return Handle{}, err
	}
	defer c.free()
	s.TTL = c.first().TTL
	if once {
		h, r, err := g.attemptAgain(ctx, &c, s)
		g.report(ctx, h, r)
		return h, err
	}
	h, err := g.inLines(ctx, &w, &c, s)
	return g.acquired(ctx, &w, h, err)
}

// keepsTurns is how long a set keeps its turn in lines while it waits in another one. These
// locks are free meanwhile, and others want them: several sets may stand before them, and each
// keeps its turn for as long.
const keepsTurns = 100 * time.Millisecond

// inLines is AcquireAll in line for each key that is taken, in the order of the keys. It keeps
// its turn in the earlier lines for a while when it waits in a later one, so that it has its
// turn in all of them when it asks the nodes. All sets wait in that order, so of two that
// overlap one waits for the other, and no cycle of them exists.
func (g *Group) inLines(ctx context.Context, w *waiting, c *calls, s holding.State) (h Handle, err error) {
	var turns []*waiter // in the order of the keys
	defer func() {
		for _, own := range turns {
			g.lines.leave(own)
		}
	}()
	w.last = engine.ErrTaken
	for _, key := range s.Keys() {
		if g.lines.isContended(key) { // it does not overtake those who wait
			w.waits(g)
			turns = append(turns, g.lines.join(key, c.first(), 0, true))
			if turns, err = g.awaitLast(ctx, w, turns); err != nil {
				return Handle{}, err
			}
			break
		}
	}
	for {
		var r reports
		w.attempts++
		h, r, err = g.attemptAgain(ctx, c, s)
		key, denied := s.Key, uint64(0)
		if refused := c.refused(); refused != nil && err == engine.ErrTaken {
			key, denied = string(refused.Key), deniedBy(&refused.Op)
		} else if n := len(turns); n > 0 {
			key = turns[n-1].key
		}
		turns = g.lines.attemptedIn(turns, key, h, denied, err)
		if n := len(turns); len(r) > 0 && n > 0 { // the hook may block: it keeps none from acting
			for _, own := range turns[:n-1] {
				if err != nil {
					g.lines.giveUp(own)
				} else {
					g.lines.leave(own)
				}
			}
			turns = turns[n-1:]
			g.reportFor(ctx, turns[0], h, r)
		} else {
			g.report(ctx, h, r)
		}
		if err == nil || !w.goesOn(err) {
			return h, g.gaveUp(ctx, w, err)
		}
		w.waits(g)
		if n := len(turns); n == 0 || turns[n-1].key != key {
			turns = append(turns, g.lines.join(key, c.first(), denied, true))
		}
		if turns, err = g.awaitLast(ctx, w, turns); err != nil {
			return Handle{}, err
		}
	}
}

// awaitLast waits for the turn in the last line, and gives up those in the earlier ones if
// that takes too long. It returns the turns that are left. No lock is passed on to a set.
func (g *Group) awaitLast(ctx context.Context, w *waiting, turns []*waiter) (_ []*waiter, err error) {
	until := never
	if len(turns) > 1 {
		until = g.clock.Now() + keepsTurns
	}
	for late := true; late; until = never {
		if _, late, err = g.lines.await(ctx, w, turns[len(turns)-1], until); late {
			for ; len(turns) > 1; turns = turns[1:] {
				g.lines.giveUp(turns[0])
			}
		}
	}
	return turns, err
}

// giveUp leaves a line in which w has its turn.
func (l *lines) giveUp(w *waiter) {
	l.did(w, func(t *table) due { return t.Done(&w.Waiter) })
	l.leave(w)
}

// attemptedIn reports an attempt to the lines in which a set has its turn, and returns the
// turns that it keeps: those up to the line for key, the first that was refused.
func (l *lines) attemptedIn(turns []*waiter, key string, h Handle, denied uint64, err error) []*waiter {
	n := len(turns)
	for ; n > 0 && turns[n-1].key > key && h.hold.IsZero(); n-- { // these were free
		l.giveUp(turns[n-1])
	}
	for _, own := range turns[:n] {
		if !h.hold.IsZero() || own.key == key {
			l.attempted(own, h, denied, err)
		}
	}
	return turns[:n]
}

// refused is the first call that nodes have refused since its key was taken, or nil.
func (c *calls) refused() *engine.Call {
	for _, one := range c.all {
		if one.Err == engine.ErrTaken && !one.Over() {
			return one
		}
	}
	return nil
}

// attemptAgain is attemptAll, and again where nodes have refused only the number of a token.
// One token stands for all keys.
func (g *Group) attemptAgain(ctx context.Context, c *calls, s holding.State) (h Handle, r reports, err error) {
	p := &c.first().Proposal
	for again := true; again; {
		var b fencing.Block
		if err = g.fence.propose(&b, p); err != nil {
			return Handle{}, r, err
		}
		c.each(func(one *engine.Call) { one.Block = b })
		if h, r, err = g.attemptAll(ctx, c, s, r); err == nil {
			h.hold.Fence = b.First
			c.each(func(one *engine.Call) { g.fence.granted(&one.Op) })
		}
		again, err = g.fence.againAll(c, p, err)
	}
	return h, r, err
}

// againAll is again for an attempt of several keys: each that was lost must be worth it.
func (f *fence) againAll(c *calls, p *fencing.Proposal, err error) (again bool, _ error) {
	if !f.on || err != engine.ErrTaken && !errors.Is(err, engine.ErrNoQuorum) {
		return false, err // won, not sent, or left
	}
	worst := fencing.Again
	c.each(func(one *engine.Call) {
		if one.Err == nil {
			return
		}
		advice, final := f.learn(&one.Op, p, one.Err)
		if final != one.Err {
			err = final
		}
		if advice != fencing.Again {
			worst = advice
		}
	})
	return p.Again(worst), err
}

// attemptAll is one attempt, with one token for all keys. Where one key is refused, the
// others are released; and all of them, if the context panics, which is user code. The
// attempt is added to r.
func (g *Group) attemptAll(ctx context.Context, c *calls, s holding.State, r reports) (Handle, reports, error) {
	if err := g.newToken(&s.Token); err != nil {
		return Handle{}, r, err
	}
	c.prepare(ctx, s.Token, 0)
	panicked := true
	defer func() {
		if panicked {
			c.forgo(context.Canceled)
		}
	}()
	unsent, err := c.do(ctx)
	panicked = false
	if s.Until = c.first().Until; err == nil && g.clock.Current() >= s.Until {
		err = engine.ErrExpired
	}
	g.engine.Note(engine.Acquire, bare(err))
	if g.cfg.OnAttempt != nil {
		one := c.deciding(err)
		r = append(r, report{s.Key, one.Took(g.clock.Now()), one.Tally, err})
	}
	if err != nil {
		if !unsent {
			c.forgo(err)
		}
		return Handle{}, r, err
	}
	absent := ^uint64(0)
	c.each(func(one *engine.Call) { absent &= one.Absent })
	return Handle{g, holding.Begin(s, absent, 0)}, r, nil
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
