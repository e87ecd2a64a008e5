package client

import (
	"context"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/base/opaque"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/client/waiting"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/rules/renewal"
	"github.com/redlock-go/redlock/internal/wire/token"
)

// Handle is a handle on an acquired lock. It is a small value, and may be copied. The zero Handle holds nothing, as
// does the Handle of a released lock.
type Handle struct {
	ref  opaque.Ref[site]
	hold holding.Hold
	key  string // the first of several
	more opaque.Ref[holding.More]
}

func handleOf(g *site, h holding.Hold, key string, more *holding.More) Handle {
	return Handle{opaque.To(g), h, key, opaque.To(more)}
}

// site counts the lock, and keeps it alive. It is nil in the zero Handle.
func (h Handle) site() *site { return h.ref.Get() }

// Fence is the fencing token, or 0 where the client is not fenced.
func (h Handle) Fence() uint64 { return uint64(h.hold.Fence) }

// Key is the locked key, the first of several. It stays after the lock.
func (h Handle) Key() string { return h.key }

// Keys is all locked keys. They stay after the lock.
func (h Handle) Keys() []string {
	more := h.more.Get()
	switch {
	case h.site() == nil:
		return nil
	case more == nil, more.Keys == nil:
		return []string{h.key}
	}
	var keys []string // a moving key once
	for _, key := range more.Keys {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Token is the value at the keys, the proof of holding the lock, or "". A lock with a shown token is not passed on
// inside the process: another may have the token.
func (h Handle) Token() string {
	h.hold.ShowToken()
	return h.Value()
}

// Value is Token for callers that do not show it.
func (h Handle) Value() string {
	s, ok := h.hold.State()
	if !ok {
		return ""
	}
	return token.Join(s.Token, s.Tail(h.site().Config.Tail))
}

// Text shows the lock without its token.
func (h Handle) Text() string {
	digest := ""
	if value := h.Value(); value != "" {
		digest = texts.Digest([]byte(value))
	}
	return texts.Lock(h.key, h.Remaining(), digest)
}

// Remaining is the validity left, or 0. A suspension of the machine is noticed.
func (h Handle) Remaining() time.Duration {
	if s, ok := h.hold.State(); ok {
		return max(0, s.Until.Sub(h.site().clock.Now()))
	}
	return 0
}

// Extend asks the nodes to count ttl from now, where they still hold the lock. A wrong ttl is reported before the end
// of the context, and this end before a lock released or expired.
func (h Handle) Extend(ctx context.Context, ttl time.Duration) error {
	s, ok := h.hold.State()
	if !ok {
		return engine.ErrNotHeld
	}
	g := h.site()
	c, err := s.Calls(g.Engine, engine.Extend, ttl, g.Config.Tail)
	if err != nil {
		return err
	}
	defer c.Free()
	ctx = orBackground(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	c.Watch(engine.Limit{Done: ctx.Done()})
	c.About(s.Token, fencing.Block{}, 0)
	switch s, _ = h.hold.State(); { // again, since user code has run
	case s.Released:
		err = engine.ErrNotHeld
	case g.clock.Now() >= s.Until:
		err = engine.ErrExpired
	}
	if err != nil {
		g.reportUnsent(ctx, engine.Extend, s.Key, err)
		if err == engine.ErrExpired {
			h.reportLost(s.Key, err)
		}
		return err
	}
	h.hold.Bind(c, s.Until)
	by, err := c.Do()
	if err == nil && g.clock.Now() >= c.Least() { // this goroutine may have waited long to run again
		err = engine.ErrExpired
		c.Rollback(err)
	}
	result := holding.ResultOf(err)
	g.keeper.NoteExtend(h.hold, c, result)
	if result != renewal.Unknown {
		g.keeper.Review(h.hold)
	}
	if result == renewal.Lost {
		g.freed(&s)
	}
	err = g.reportEnd(ctx, c, by, err)
	if err == engine.ErrExpired {
		switch left := h.Remaining(); {
		case left > g.left(c.Least()): // it has brought nothing, and shortened nothing
			return nil
		case left > 0: // renewals have overtaken it: the validity it was about is over
			return h.Extend(ctx, ttl)
		}
	}
	if err == engine.ErrExpired || err == engine.ErrNotHeld {
		h.reportLost(s.Key, err)
	}
	return err
}

// freed notes that no holder in this process has the lock any more. Of a shared lock there may be others: nodes show
// when it is free.
func (g *site) freed(s *holding.State) {
	if s.Shared {
		return
	}
	serial := s.Serial
	if s.Several() != nil { // it is of the first key
		serial = 0
	}
	g.eachKey(s.Key, s.More, func(g *site, key string) { g.lines.Freed(key, serial) })
}

// eachKey calls f for each key of a lock, with its group.
func (g *site) eachKey(key string, m *holding.More, f func(g *site, key string)) {
	if m == nil || m.Keys == nil {
		f(g, key)
		return
	}
	for i, key := range m.Keys {
		f(g.at(m, i), key)
	}
}

// at is the group of the i-th key of a lock.
func (g *site) at(m *holding.More, i int) *site { return siteOf(m.At(i, g.Engine)) }

// KeepAlive keeps the lock alive until its context ends.
func (h Handle) KeepAlive(ctx context.Context) *holding.Kept {
	var k *holding.Keeper
	if h.site() != nil {
		k = h.site().keeper
	}
	return k.Keep(orBackground(ctx), h.hold)
}

// Wanted is closed once another caller wants the lock, and nil where h holds nothing.
func (h Handle) Wanted() <-chan struct{} {
	s, ok := h.hold.State()
	if !ok {
		return nil
	}
	var x *waiting.Listener
	h.site().eachKey(s.Key, s.More, func(g *site, key string) { x = g.lines.Listen(key, h.hold, s.Shared, x) })
	return x.Wanted()
}

// WantedFrom is Wanted of the lock of ctx.
func WantedFrom(ctx context.Context) <-chan struct{} {
	home, h, ok := holding.HoldFrom(ctx)
	if !ok {
		return nil
	}
	return handleOf(siteOf(home), h, "", nil).Wanted()
}

// left is the time to an instant of the group's clock, or 0.
func (g *site) left(until clock.Instant) time.Duration { return max(0, until.Sub(g.clock.Now())) }

// FenceFrom is the fencing token of the lock of ctx.
func FenceFrom(ctx context.Context) (token uint64, ok bool) {
	t, ok := holding.FenceFrom(ctx)
	return uint64(t), ok
}
