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

// doing is a call of Do.
type doing struct {
	Name    string // of the call, for errors
	Keys    []string
	Any     bool // one of Keys is enough
	TTL     time.Duration
	Mode    Mode
	Acquire func(c *Client, ctx context.Context, ttl time.Duration, keys []string, r request) (Handle, error)
}

// do calls f with a context that ends with the lock of d. It releases the lock in every case, at the end of its term, and
// does not wait for the nodes: a loss is reported if it was seen before.
//
// It is counted before it asks for a lock, and Shutdown looks at the count after all groups have begun to refuse new
// locks: so it waits for each call with a lock. A later call gets none.
func (c *Client) do(ctx context.Context, d doing, f func(context.Context) error) (err error) {
	g := c.groups[0]
	if d.TTL < renewal.MinTTL {
		return engine.WrongArgument("ttl is %v; %s needs %v at least, to keep the lock alive", d.TTL, d.Name, renewal.MinTTL)
	}
	if f == nil {
		return engine.WrongArgument("%s was given no function", d.Name)
	}
	isCounted := c.running.Admit()
	if isCounted {
		defer c.leave()
	}
	ctx = orBackground(ctx)
	if key := g.heldAround(ctx, &d); key != "" {
		return engine.WrongArgument("%s of %s was called with the context of a lock on it: it would wait for itself", d.Name, texts.Quote(key))
	}
	r := request{settings: &c.settings, Mode: d.Mode, term: c.settings.newTerm(d.Mode)}
	h, err := d.Acquire(c, c.countedIn(ctx, isCounted), d.TTL, d.Keys, r)
	if err != nil {
		return err
	}
	left := false
	defer func() {
		if !left { // ctx or Rand, user code, has panicked
			h.ReleaseAsync()
		}
	}()
	kept := h.KeepAlive(ctx)
	defer func() {
		lost := kept.Lost()
		kept.Stop()
		unsent := h.release(context.Background(), engine.Driven, r.term.stay(g.clock.Now()))
		left = true
		if lost == engine.ErrClosed && unsent != engine.ErrClosed { // the client shuts down, and f had the lock to its end
			lost = nil
		}
		if lost != nil {
			err = errors.Join(err, g.cfg.LostError(strings.Clone(h.Key()), lost))
		}
	}()
	return f(kept)
}

// countedIn is the context of a call as it acquires its lock. Its hooks are not waited for: see hook.
func (c *Client) countedIn(ctx context.Context, isCounted bool) context.Context {
	if isCounted && c.groups[0].HasHooks() {
		return &counted{Context: ctx, By: c.running}
	}
	return ctx
}

// leave ends a call of Do. Its release is in the queue, with those of earlier calls. The process may end after the last
// call, so the last call has them sent. Any other leaves them to the next batch, with what the callers do next.
func (c *Client) leave() {
	if c.running.Leave() {
		for _, g := range c.groups {
			g.engine.DriveAtOnce()
		}
	}
}

// heldAround is a key of d if ctx belongs to a lock on it held by this client, or "". Where any of several is enough,
// ctx must belong to locks on all of them.
func (g *site) heldAround(ctx context.Context, d *doing) (held string) {
	around, now := holding.Around(ctx, func(home *engine.Engine) bool { return siteOf(home).ending == g.ending }), g.clock.Now()
	for _, key := range d.Keys {
		is := slices.ContainsFunc(around, func(s holding.State) bool { return slices.Contains(s.Keys(), key) && now < s.Until })
		switch {
		case is && !d.Any:
			return key
		case is:
			held = key
		case d.Any:
			return ""
		}
	}
	return held
}
