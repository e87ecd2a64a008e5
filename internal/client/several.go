package client

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/client/waiting"
)

// MaxKeys is how many keys AcquireSeveral takes.
const MaxKeys = 64

// acquireSeveral makes one option of all keys, or one of each. A moving key is a set of two: it is locked in both groups
// or in none.
func (c *Client) acquireSeveral(ctx context.Context, ttl time.Duration, keys []string, mode Mode, t *term) (Handle, error) {
	call := "AcquireAll"
	if mode&Any != 0 {
		call = "AcquireAny"
	}
	switch n := len(keys); {
	case n == 0:
		return Handle{}, engine.WrongArgument("%s was given no keys, 1 to %d are allowed", call, MaxKeys)
	case n > MaxKeys:
		return Handle{}, engine.WrongArgument("%s was given %d keys, at most %d are allowed", call, n, MaxKeys)
	}
	keys = slices.Compact(slices.Sorted(slices.Values(keys)))
	if mode&Any == 0 {
		o, err := c.option(keys)
		if err != nil {
			return Handle{}, err
		}
		if o.More == nil {
			return c.acquire(ctx, o.Key, ttl, mode, t)
		}
		w := c.want(o.site, ttl, mode, t)
		w.options = append(w.options, o)
		return w.acquire(orBackground(ctx), nil)
	}
	first, _ := c.of(keys[0])
	w := c.want(first, ttl, mode, t)
	for i := range keys {
		o, err := c.option(keys[i : i+1])
		if err == nil && i > 0 { // the first is checked by its call
			err = o.site.Engine.CheckKey([]byte(o.Key))
		}
		if err != nil {
			w.free()
			return Handle{}, err
		}
		w.options = append(w.options, o)
	}
	return w.acquire(orBackground(ctx), nil)
}

// option is a lock that would do: on one key, on a moving key in both its groups, or on several keys. The site, that of
// the first key, counts it and keeps it alive.
type option struct {
	site *site
	Key  string
	More *holding.More // several keys, or a moving one; or nil
	last waiting.Ended // how the last attempt on it has ended
}

// option makes one of keys, each once and in the order of their bytes. They are asked for, and waited for, in the order
// of their groups, and those of a group in the order of their bytes. All clients have this order, so no two sets wait
// for each other: the first one at a node wins all of it there.
func (c *Client) option(keys []string) (o option, err error) {
	if len(keys) == 1 {
		if first, second := c.of(keys[0]); second == nil {
			return option{site: first, Key: keys[0]}, nil
		}
	}
	type place struct {
		site *site
		key  string
	}
	var places []place
	for _, key := range keys {
		first, second := c.of(key)
		places = append(places, place{first, key})
		if second != nil {
			places = append(places, place{second, key})
		}
	}
	slices.SortStableFunc(places, func(a, b place) int { return cmp.Compare(a.site.Config.Number, b.site.Config.Number) })
	o = option{site: places[0].site, Key: places[0].key, More: new(holding.More)}
	for i, p := range places {
		if most := p.site.Config.Engine.MaxWaiting; i >= most && places[i-most].site == p.site {
			return o, engine.WrongArgument("AcquireAll was given %d keys, and MaxWaiting is %d for each group: raise MaxWaiting", len(keys), most)
		}
		o.More.Keys, o.More.On = append(o.More.Keys, p.key), append(o.More.On, p.site.Engine)
	}
	return o, nil
}

// Permits returns the keys of a semaphore: n names with one tag, for one group to have them all.
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
