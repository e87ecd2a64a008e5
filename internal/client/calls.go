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

// Mode is how a lock is asked for.
type Mode uint8

const (
	Once   Mode = 1 << iota // one attempt, in no line
	Shared                  // beside others who share it
	All                     // all of several keys, as one lock
	Any                     // any of several keys, the first to be had
)

// Acquire acquires the lock on a key.
func (c *Client) Acquire(ctx context.Context, key string, ttl time.Duration, mode Mode) (Handle, error) {
	if err := c.settings.refusal(false); err != nil {
		return Handle{}, err
	}
	return c.acquire(ctx, key, ttl, mode, nil)
}

// AcquireSeveral is Acquire for all of several keys, as one lock, or for any of them. With Once it makes one attempt, or
// asks for each key once.
func (c *Client) AcquireSeveral(ctx context.Context, ttl time.Duration, keys []string, mode Mode) (Handle, error) {
	if err := c.settings.refusal(false); err != nil {
		return Handle{}, err
	}
	return c.acquireSeveral(ctx, ttl, keys, mode, nil)
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
