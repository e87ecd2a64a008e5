package group

import (
	"context"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/client/waiting"
)

// MaxKeys is how many keys AcquireAll and AcquireAny take.
const MaxKeys = 64

// Part is the keys of a set in one group. A moving key is in two parts.
type Part struct {
	Group *Group
	Keys  []string
}

// CheckKeys returns keys, each once, in their canonical order, the same for all clients: of two overlapping sets, the
// first one at a node wins all of it there.
func CheckKeys(call string, keys []string) ([]string, error) {
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

// AcquireAll is Acquire for several keys, or a moving one, as one lock: all or none. The parts are in the order of
// their groups, and the keys of each in their canonical order. The first group counts the lock, and keeps it alive.
// With once there is one attempt.
func AcquireAll(ctx context.Context, ttl time.Duration, parts []Part, once bool, met *Contest) (Handle, error) {
	g, more := parts[0].Group, new(holding.More)
	for _, p := range parts {
		if n, most := len(p.Keys), g.cfg.Engine.MaxWaiting; n > most {
			return Handle{}, engine.WrongArgument("AcquireAll was given %d keys, and MaxWaiting is %d for each group: raise that", n, most)
		}
		more.Keys = append(more.Keys, p.Keys...)
		for range p.Keys {
			more.Sites = append(more.Sites, p.Group)
		}
	}
	if len(more.Keys) == 1 {
		return g.Acquire(ctx, more.Keys[0], ttl, once, met)
	}
	return g.acquire(orBackground(ctx), more.Keys[0], more, ttl, once, met, nil)
}

// fairFor is for how long a set asks for its keys only with a turn in each of its lines. Of 20 callers for three of
// ten keys one waited for 1.6 s at most, and for 4.7 s where each asked at any turn.
const fairFor = 100 * time.Millisecond

// inLines is AcquireAll in the lines for the contended keys. It asks the nodes for all keys once it has a turn in
// each line, and after a while, in one. Until it has all keys it keeps a turn for as long as it has waited for it,
// and then leaves that line: the key is free meanwhile, and others want it. It stands there again when it waits for
// no other turn. A kept turn refuses no vote, so no set waits for another for long.
func (g *Group) inLines(ctx context.Context, t *waiting.Tries, c *Calls, s *holding.State) (Handle, error) {
	bell, places := waiting.NewBell(), make([]*waiting.Waiter, len(s.More.Keys))
	join := func(i int, call *engine.Call, last waiting.Ended) {
		places[i] = g.at(s.More, i).lines.Join(s.More.Keys[i], call, last, bell)
	}
	stands := func() bool {
		return slices.ContainsFunc(places, func(w *waiting.Waiter) bool { return w != nil })
	}
	leave := func(h Handle) {
		for i, w := range places {
			if w != nil {
				w.Left(h.hold)
				places[i] = nil
			}
		}
	}
	defer func() { leave(Handle{}) }() // it waits no longer, or a panic has ended it
	for i, key := range s.More.Keys {
		if g.at(s.More, i).lines.IsContended(key) {
			join(i, c.First(), waiting.Ended{})
		}
	}
	for first := !stands(); ; first = false {
		if !first {
			t.Wait(!stands() || t.IsLimited())
			if why, _ := g.lines.Await(c.First().Watched(), t, bell, places...); why != waiting.MayAttempt {
				return Handle{}, inVain(why)
			}
		}
		if waiting.HasSomeTurns(places) && g.clock.Now() < t.Began.Add(fairFor) {
			waiting.KeepTurns(places)
			continue
		}
		t.Attempts++
		h, r, err := g.attempt(c, s, false)
		if stands() {
			h, err = g.unlessEnding(h, err)
		}
		more := t.ShouldRetry(err)
		if more && err == engine.ErrTaken {
			waits := false
			for i, w := range places {
				waits = w != nil && w.Shared(deniedBy(c.Refused(i))) || waits
			}
			for i := range places {
				if by := c.Refused(i); by != nil && !waits && places[i] == nil {
					join(i, by, waiting.Ended{At: g.clock.Now(), Err: err, Denied: deniedBy(by)})
				}
			}
		} else { // it has won; or no holder has refused it, and it stands before others in no line
			if !more && !waiting.IsRetryable(err) { // its context has ended
				waiting.Hear(t, places)
			}
			leave(h)
		}
		g.report(ctx, h, r, places...)
		if !more {
			return h, err
		}
	}
}
