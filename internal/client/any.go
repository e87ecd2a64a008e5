package client

import (
	"context"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
)

// AcquireAny is Acquire for one of several keys, the first to be had. With once each is asked for once.
func (c *Client) AcquireAny(ctx context.Context, ttl time.Duration, keys []string, once bool) (Handle, error) {
	keys, err := checkKeys("AcquireAny", keys)
	if err != nil {
		return Handle{}, err
	}
	options := make([]option, len(keys))
	for i, key := range keys {
		first, second := c.of(key)
		options[i] = option{Key: key, site: first}
		if second != nil {
			options[i].More = &holding.More{Keys: []string{key, key}, On: []*engine.Engine{first.engine, second.engine}}
		}
	}
	return acquireAny(ctx, ttl, options, once)
}

// DoAny is Do for one of several keys.
func (c *Client) DoAny(ctx context.Context, ttl time.Duration, keys []string, f func(context.Context) error) error {
	d := doing{Name: "DoAny", Keys: keys, Any: true, TTL: ttl}
	d.Acquire = func(ctx context.Context) (Handle, error) { return c.AcquireAny(ctx, ttl, keys, false) }
	return c.do(ctx, d, f)
}

// Permits is the keys of a semaphore: n names with one tag, for one group to have them all.
func Permits(name string, n int) []string {
	base := name + ":permit:"
	if tag(name) == name && name != "" { // it has none
		base = "{" + name + "}:permit:"
	}
	keys := make([]string, max(0, n))
	for i := range keys {
		keys[i] = base + strconv.Itoa(i+1)
	}
	return keys
}
