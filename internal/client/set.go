package client

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/client/group"
)

// AcquireAll is Acquire for several keys, as one lock: all or none. With once it makes one attempt. Keys are asked
// for, and waited for, in the order of their groups, and within a group in the order of their bytes. All clients have
// this order, so no two sets wait for each other.
func (c *Client) AcquireAll(ctx context.Context, ttl time.Duration, keys []string, once bool) (group.Handle, error) {
	keys, err := group.CheckKeys("AcquireAll", keys)
	if err != nil {
		return group.Handle{}, err
	}
	if len(c.groups) == 1 {
		return group.AcquireAll(ctx, ttl, []group.Part{{Group: c.groups[0], Keys: keys}}, once, nil)
	}
	of := make(map[*group.Group][]string)
	for _, key := range keys {
		first, second := c.of(key)
		of[first] = append(of[first], key)
		if second != nil {
			of[second] = append(of[second], key)
		}
	}
	var parts []group.Part
	for _, g := range c.groups {
		if keys := of[g]; len(keys) > 0 {
			parts = append(parts, group.Part{Group: g, Keys: keys})
		}
	}
	return group.AcquireAll(ctx, ttl, parts, once, nil)
}
