package client

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/rules/renewal"
)

// This page is the whole path of a plain lock, exclusive or shared: one key in one group, no hook, no fencing, no value
// of a front end, no term, and no line for the key. A grant, or a successful release, ends here. attempt and released
// judge any other end, given the ended call; so nothing is decided twice.

// plainly makes an attempt to acquire. A call without an error has not won. Rand and ctx are user code: after a panic
// of theirs no node was asked, and the pool is short of a call.
func (g *site) plainly(ctx context.Context, key string, ttl time.Duration, r request) (h Handle, ended *engine.Call, err error) {
	c, err := g.Engine.Call(engine.Acquire, key, ttl)
	if err != nil {
		return h, nil, err
	}
	if err := c.Token.Fill(g.Config.Rand); err != nil {
		return h, nil, fmt.Errorf("redlock: %w", err)
	}
	c.Watch(r.limitOf(g, ctx.Done()))
	c.Tail, c.Denied, c.Shared = r.tail, r.denied, r.Mode&Shared != 0
	failed := g.Engine.Do(c, nil)
	now := g.clock.Now()
	won := failed == nil && c.Err == nil && now < c.Until // this goroutine may have waited long to run again
	if !won || !g.lines.Granted(key, c.Serial, c.Shared) {
		return h, c, nil
	}
	s := holding.State{Key: key, Serial: c.Serial, Token: c.Token, Held: renewal.Held{Until: c.Until, TTL: c.TTL}, More: r.more}
	s.Turn = holding.Turn{Wanted: c.Began(), Granted: now, Shared: c.Shared, Waits: r.Mode&Once == 0}
	h = handleOf(g, g.keeper.Begin(&s, c.Absent, 0), key, nil)
	r.term.won(g, 0, c.Trip)
	c.Free()
	return h, nil, nil
}

// releasePlainly is Release of a plain lock. For any other lock it returns false, and has changed nothing.
func (h Handle) releasePlainly(ctx context.Context) (done bool, err error) {
	g := h.site()
	if ctx.Err() != nil {
		return false, nil
	}
	c, err := g.Engine.Call(engine.Release, h.key, 0)
	if err != nil {
		return false, nil
	}
	c.Watch(engine.Limit{Done: ctx.Done()})
	c.Tail = g.Config.Tail // unless the lock has its own
	turn, ok := g.keeper.ReleasingPlain(h.hold, &c.Op)
	if !ok {
		c.Free()
		return false, nil
	}
	err = g.Engine.Do(c, nil) // ctx is asked only once the line knows: it may block
	g.lines.Had(h.key, turn, c.Began(), true)
	if !c.Shared {
		g.lines.Freed(h.key, h.hold.Serial())
	}
	if err != nil || c.Err != nil {
		defer c.Free()
		by, err := c.Outcome(err)
		return true, h.released(ctx, c, by, err)
	}
	h.hold.End()
	c.Free()
	return true, nil
}
