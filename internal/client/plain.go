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

// plainly makes an attempt to acquire. A call without an error has not won. ctx is user code: after its panic
// no node was asked, and the pool is short of a call.
func (c *Client) plainly(ctx context.Context, g *site, key string, ttl time.Duration, mode Mode, t *term) (h Handle, ended *engine.Call, err error) {
	first, err := g.Engine.Call(engine.Acquire, key, ttl)
	if err != nil {
		return h, nil, err
	}
	if err := first.Token.Fill(g.Config.Rand); err != nil {
		return h, nil, fmt.Errorf("redlock: %w", err)
	}
	first.Watch(c.settings.limit(g, mode, ctx.Done()))
	first.Tail, first.Denied, first.Shared = c.settings.tail, t.denials(), mode&Shared != 0
	failed := g.Engine.Do(first, nil)
	now := g.clock.Now()
	won := failed == nil && first.Err == nil && now < first.Until // this goroutine may have waited long to run again
	if !won || !g.lines.Granted(key, first.Serial, first.Shared) {
		return h, first, nil
	}
	s := holding.State{Key: key, Serial: first.Serial, Token: first.Token, Held: renewal.Held{Until: first.Until, TTL: first.TTL}, More: c.settings.more}
	s.Turn = holding.Turn{Wanted: first.Began(), Granted: now, Shared: first.Shared, Waits: mode&Once == 0}
	h = handleOf(g, g.keeper.Begin(&s, first.Absent, 0), key, nil)
	t.won(g, 0, first.Trip)
	first.Free()
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
