package client

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/client/group"
)

// of returns the group of a key. While the groups change a key may have two: the one with the lower number comes
// first, since all clients ask in this order.
func (c *Client) of(key string) (first, second *site) {
	if len(c.groups) == 1 {
		return c.groups[0], nil
	}
	i := number(key, c.seeds[:c.now])
	if c.next == 0 {
		return c.groups[i], nil
	}
	switch j := number(key, c.seeds[:c.next]); {
	case i < j:
		return c.groups[i], c.groups[j]
	case i > j:
		return c.groups[j], c.groups[i]
	}
	return c.groups[i], nil
}

// Mode is how a lock on one key is asked for.
type Mode uint8

const (
	Once   Mode = 1 << iota // one attempt, in no line
	Shared                  // beside others that share it
)

// IsOnce and IsShared report what a mode has.
func (m Mode) IsOnce() bool   { return m&Once != 0 }
func (m Mode) IsShared() bool { return m&Shared != 0 }

// Acquire acquires the lock on a key. A moving key is a set of two: it is locked in
// both groups or in none.
func (c *Client) Acquire(ctx context.Context, key string, ttl time.Duration, mode Mode) (Handle, error) {
	return c.acquire(ctx, key, ttl, request{settings: &c.settings, Mode: mode})
}

func (c *Client) acquire(ctx context.Context, key string, ttl time.Duration, r request) (Handle, error) {
	first, second := c.of(key)
	if second != nil {
		return acquireBoth(ctx, key, ttl, first, second, r)
	}
	return first.Acquire(ctx, key, ttl, r)
}

// acquireBoth is apart from Acquire for the stacks of its callers: they would hold its variables while they wait.
func acquireBoth(ctx context.Context, key string, ttl time.Duration, first, second *site, r request) (Handle, error) {
	keys := []string{key}
	return acquireAll(ctx, ttl, []part{{first, keys}, {second, keys}}, r)
}

// Do calls f while the lock on a key is held.
func (c *Client) Do(ctx context.Context, key string, ttl time.Duration, mode Mode, f func(context.Context) error) error {
	d := doing{Name: "Do", Keys: []string{key}, TTL: ttl, Mode: mode, Acquire: (*Client).acquireFirst}
	switch mode {
	case Once:
		d.Name = "TryDo"
	case Shared:
		d.Name = "DoShared"
	case Once | Shared:
		d.Name = "TryDoShared"
	}
	return c.do(ctx, d, f)
}

func (c *Client) acquireFirst(ctx context.Context, ttl time.Duration, keys []string, r request) (Handle, error) {
	return c.acquire(ctx, keys[0], ttl, r)
}

// DoAll is Do for several keys.
func (c *Client) DoAll(ctx context.Context, ttl time.Duration, keys []string, f func(context.Context) error) error {
	return c.do(ctx, doing{Name: "DoAll", Keys: keys, TTL: ttl, Acquire: (*Client).acquireAll}, f)
}

// Inspect asks the nodes of each group of a key what they have there.
func (c *Client) Inspect(ctx context.Context, key string) ([]group.Sight, group.Summary, error) {
	ctx = orBackground(ctx)
	first, second := c.of(key)
	seen, all, err := first.Inspect(ctx, key)
	if second == nil || err != nil {
		return seen, all, err
	}
	there, also, err := second.Inspect(ctx, key)
	return append(seen, there...), group.Both(all, also), err
}
