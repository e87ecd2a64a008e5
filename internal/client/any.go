package client

import (
	"context"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
)

// AcquireAny is Acquire for one of several keys, the first to be had. With Once each is asked for once.
func (c *Client) AcquireAny(ctx context.Context, ttl time.Duration, keys []string, mode Mode) (Handle, error) {
	return c.acquireAny(ctx, ttl, keys, request{settings: &c.settings, Mode: mode})
}

func (c *Client) acquireAny(ctx context.Context, ttl time.Duration, keys []string, r request) (Handle, error) {
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
	return acquireAny(ctx, ttl, options, r)
}

// DoAny is Do for one of several keys.
func (c *Client) DoAny(ctx context.Context, ttl time.Duration, keys []string, f func(context.Context) error) error {
	return c.do(ctx, doing{Name: "DoAny", Keys: keys, Any: true, TTL: ttl, Acquire: (*Client).acquireAny}, f)
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
