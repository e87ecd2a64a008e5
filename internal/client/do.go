package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/rules/renewal"
)

// Do calls f with a context that ends with the lock on keys, one unless mode says how many. It releases the lock in every
// case, at the end of its term, and does not wait for the nodes: a loss is reported if it was seen before.
//
// It is counted before it asks for a lock, and Shutdown looks at the count after all groups have begun to refuse new
// locks: so it waits for each call with a lock. A later call gets none.
func (c *Client) Do(ctx context.Context, ttl time.Duration, mode Mode, f func(context.Context) error, keys ...string) (err error) {
	g := c.groups[0]
	if ttl < renewal.MinTTL {
		return engine.WrongArgument("ttl is %v; %s needs %v at least, to keep the lock alive", ttl, mode.nameOfDo(), renewal.MinTTL)
	}
	if f == nil {
		return engine.WrongArgument("%s was given no function", mode.nameOfDo())
	}
	if err := c.settings.refusal(mode&Shared == 0); err != nil {
		return err
	}
	t := newTerm(c.settings.AtLeast, mode)
	if c.running.Admit() {
		defer c.leave()
	}
	ctx = orBackground(ctx)
	if key := g.heldAround(ctx, keys, mode&Any != 0); key != "" {
		return engine.WrongArgument("%s of %s was called with the context of a lock on it: it would wait for itself", mode.nameOfDo(), texts.Quote(key))
	}
	var h Handle
	if mode&(All|Any) == 0 {
		h, err = c.acquire(ctx, keys[0], ttl, mode, t)
	} else {
		h, err = c.acquireSeveral(ctx, ttl, keys, mode, t)
	}
	if err != nil {
		return err
	}
	left := false
	defer func() {
		if !left { // ctx, user code, has panicked
			h.ReleaseAsync()
		}
	}()
	kept := h.KeepAlive(ctx)
	defer func() {
		lost := kept.Lost()
		kept.Stop()
		unsent := h.release(context.Background(), engine.Driven, t.stay(g.clock.Now()))
		left = true
		if lost == engine.ErrClosed && unsent != engine.ErrClosed { // the client shuts down, and f had the lock to its end
			lost = nil
		}
		if lost != nil {
			err = errors.Join(err, g.Config.LostError(strings.Clone(h.Key()), lost))
		}
	}()
	return f(kept)
}

// nameOfDo is the name of the call of Do, for errors.
func (m Mode) nameOfDo() string {
	switch m {
	case Once:
		return "TryDo"
	case Shared:
		return "DoShared"
	case Once | Shared:
		return "TryDoShared"
	case All:
		return "DoAll"
	case Any:
		return "DoAny"
	}
	return "Do"
}

// leave ends a call of Do. Its release is in the queue, with those of earlier calls. The process may end after the last
// call, so the last call has them sent. Any other leaves them to the next batch, with what the callers do next.
func (c *Client) leave() {
	if c.running.Leave() {
		for _, g := range c.groups {
			g.Engine.DriveAtOnce()
		}
	}
}

// heldAround is one of keys if ctx belongs to a lock on it held by this client, or "". Where any is enough, ctx must belong
// to locks on all of them.
func (g *site) heldAround(ctx context.Context, keys []string, isAny bool) (held string) {
	around, now := holding.Around(ctx, func(home *engine.Engine) bool { return siteOf(home).ending == g.ending }), g.clock.Now()
	for _, key := range keys {
		is := slices.ContainsFunc(around, func(s holding.State) bool { return slices.Contains(s.Keys(), key) && now < s.Until })
		switch {
		case is && !isAny:
			return key
		case is:
			held = key
		case isAny:
			return ""
		}
	}
	return held
}
