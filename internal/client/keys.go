package client

import (
	"context"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
)

// MaxKeys is how many keys AcquireAll and AcquireAny take.
const MaxKeys = 64

// part is the keys of a set in one group. A moving key is in two parts.
type part struct {
	site *site
	keys []string
}

// checkKeys returns keys, each once, in their canonical order, the same for all clients: of two overlapping sets, the
// first one at a node wins all of it there.
func checkKeys(call string, keys []string) ([]string, error) {
	switch n := len(keys); {
	case n == 0:
		return nil, engine.WrongArgument("%s was given no keys, 1 to %d are allowed", call, MaxKeys)
	case n > MaxKeys:
		return nil, engine.WrongArgument("%s was given %d keys, at most %d are allowed", call, n, MaxKeys)
	}
	return slices.Compact(slices.Sorted(slices.Values(keys))), nil
}

// unique is keys, each once.
func unique(keys []string) (once []string) {
	for _, key := range keys {
		if !slices.Contains(once, key) {
			once = append(once, key)
		}
	}
	return once
}

// acquireAll is Acquire for several keys, or a moving one, as one lock: all or none. The parts are in the order of
// their groups, and the keys of each in their canonical order. The first group counts the lock, and keeps it alive.
func acquireAll(ctx context.Context, ttl time.Duration, parts []part, r request) (Handle, error) {
	g, more := parts[0].site, new(holding.More)
	for _, p := range parts {
		if n, most := len(p.keys), g.cfg.Engine.MaxWaiting; n > most {
			return Handle{}, engine.WrongArgument("AcquireAll was given %d keys, and MaxWaiting is %d for each group: raise MaxWaiting", n, most)
		}
		more.Keys = append(more.Keys, p.keys...)
		for range p.keys {
			more.On = append(more.On, p.site.engine)
		}
	}
	if len(more.Keys) == 1 {
		return g.Acquire(ctx, more.Keys[0], ttl, r)
	}
	return g.acquireSet(ctx, more, ttl, r)
}
