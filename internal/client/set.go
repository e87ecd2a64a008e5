package client

import (
	"context"
	"time"
)

// AcquireAll is Acquire for several keys, as one lock: all or none. With once it makes one attempt. Keys are asked
// for, and waited for, in the order of their groups, and within a group in the order of their bytes. All clients have
// this order, so no two sets wait for each other.
func (c *Client) AcquireAll(ctx context.Context, ttl time.Duration, keys []string, mode Mode) (Handle, error) {
	return c.acquireAll(ctx, ttl, keys, request{settings: &c.settings, Mode: mode})
}

func (c *Client) acquireAll(ctx context.Context, ttl time.Duration, keys []string, r request) (Handle, error) {
	keys, err := checkKeys("AcquireAll", keys)
	if err != nil {
		return Handle{}, err
	}
	if len(c.groups) == 1 {
		return acquireAll(ctx, ttl, []part{{c.groups[0], keys}}, r)
	}
	of := make(map[*site][]string)
	for _, key := range keys {
		first, second := c.of(key)
		of[first] = append(of[first], key)
		if second != nil {
			of[second] = append(of[second], key)
		}
	}
	var parts []part
	for _, g := range c.groups {
		if keys := of[g]; len(keys) > 0 {
			parts = append(parts, part{g, keys})
		}
	}
	return acquireAll(ctx, ttl, parts, r)
}
