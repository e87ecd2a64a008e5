package group

import (
	"context"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/holding"
	"github.com/redlock-go/redlock/internal/operation"
	"github.com/redlock-go/redlock/internal/waiting"
)

// MaxKeys is how many keys AcquireAll takes.
const MaxKeys = 64

// Part is the keys of a set that one group has. A key that moves is in two parts.
type Part struct {
	Group *Group
	Keys  []string
}

// CheckKeys returns keys, each once, in their canonical order, which is the same for all clients: of
// two sets that overlap, the one that reaches a node first then wins all of it
// there.
func CheckKeys(keys []string) ([]string, error) {
	switch n := len(keys); {
	case n == 0:
		return nil, engine.WrongArgument("AcquireAll was given no keys, 1 to %d are allowed", MaxKeys)
	case n > MaxKeys:
		return nil, engine.WrongArgument("AcquireAll was given %d keys, at most %d are allowed", n, MaxKeys)
	}
	return slices.Compact(slices.Sorted(slices.Values(keys))), nil
}

// unique is keys without those that stand there a second time.
func unique(keys []string) (once []string) {
	for _, key := range keys {
		if !slices.Contains(once, key) {
			once = append(once, key)
		}
	}
	return once
}

// AcquireAll is Acquire for several keys, or one that moves, which become one lock: all or none.
// The parts are in the order of their groups, and the keys of each in their canonical order. The
// first group counts the lock, and keeps it alive. With once there is one attempt.
func AcquireAll(ctx context.Context, ttl time.Duration, parts []Part, once bool) (Handle, error) {
	ctx = orBackground(ctx)
	g, more := parts[0].Group, &holding.More{Keys: parts[0].Keys}
	if len(parts) > 1 {
		more.Keys = nil
		for _, p := range parts {
			more.Keys = append(more.Keys, p.Keys...)
			for range p.Keys {
				more.Sites = append(more.Sites, p.Group)
			}
		}
	}
	keys := more.Keys
	if len(keys) == 1 {
		if once {
			return g.TryAcquire(ctx, keys[0], ttl)
		}
		return g.Acquire(ctx, keys[0], ttl)
	}
	for _, p := range parts {
		if n, most := len(p.Keys), g.cfg.Engine.MaxWaiting; n > most {
			return Handle{}, engine.WrongArgument("AcquireAll was given %d keys, and MaxWaiting is %d for each group: raise that", n, most)
		}
	}
	t := g.lines.NewTries(keys[0])
	if err := ctx.Err(); err != nil {
		if once {
			return Handle{}, err
		}
		return Handle{}, g.cutOff(ctx, &t)
	}
	s := holding.State{Key: keys[0], More: more}
	c, err := g.acquisition(ctx, &s, ttl)
	if err != nil {
		return Handle{}, err
	}
	defer c.Free()
	if once {
		h, r, err := g.attempt(ctx, &c, &s, false)
		g.report(ctx, nil, h, r)
		return h, err
	}
	h, err := g.inLines(ctx, &t, &c, &s)
	return g.acquired(ctx, &t, h, err)
}

// keepTurns is how long a set keeps its turn in lines while it waits in another one. These
// locks are free meanwhile, and others want them: several sets may stand before them, and each
// keeps its turn for as long.
const keepTurns = 100 * time.Millisecond

// turn is the place of a set in the line for one of its keys, and that of the key in the set.
type turn struct {
	*waiting.Waiter
	place int
}

// inLines is AcquireAll in line for each key that is taken, in the order of the keys, which is
// first that of their groups. It keeps its turn in the earlier lines for a while when it waits in a
// later one, so that it has its turn in all of them when it asks the nodes. All sets wait in that
// order, so of two that overlap one waits for the other, and no cycle of them exists.
func (g *Group) inLines(ctx context.Context, t *waiting.Tries, c *operation.Calls, s *holding.State) (Handle, error) {
	keys := s.More.Keys
	var turns []turn // in the order of the keys
	defer func() {
		for _, w := range turns {
			w.Leave()
		}
	}()
	for i, key := range keys {
		if lines := g.at(s.More, i).lines; lines.IsContended(key) { // it does not overtake waiters
			t.Wait()
			turns = append(turns, turn{lines.Join(key, c.First(), 0, nil, true), i})
			var err error
			if turns, err = g.awaitLast(ctx, t, turns); err != nil {
				return Handle{}, err
			}
			break
		}
	}
	for {
		t.Attempts++
		h, r, err := g.attempt(ctx, c, s, false)
		if t.ShouldRetry(err) && err != engine.ErrTaken {
			// No holder has refused it: another key's group has no quorum, for example. It stands before others in no line.
			for _, w := range turns {
				w.GiveUp()
			}
			turns = nil
			g.report(ctx, nil, h, r)
			if why := t.Pause(ctx); why != waiting.MayAttempt {
				return Handle{}, g.waitedInVain(ctx, t, why)
			}
			continue
		}
		wanted, denied := 0, uint64(0) // the place of the key to stand in line for
		if refused, by := c.Refused(); refused >= 0 && err == engine.ErrTaken {
			wanted, denied = refused, deniedBy(by)
		} else if n := len(turns); n > 0 {
			wanted = turns[n-1].place
		}
		turns = attempted(turns, wanted, h, denied, err, r != nil)
		last := turn{nil, -1}
		if n := len(turns); n > 0 {
			last = turns[n-1]
		}
		g.report(ctx, last.Waiter, h, r)
		if err == nil || !t.ShouldRetry(err) {
			return h, g.gaveUp(ctx, t, err)
		}
		t.Wait()
		if last.place != wanted {
			turns = append(turns, turn{g.at(s.More, wanted).lines.Join(keys[wanted], c.First(), denied, t.Last, true), wanted})
		}
		if turns, err = g.awaitLast(ctx, t, turns); err != nil {
			return Handle{}, err
		}
	}
}

// awaitLast waits for the turn in the last line, and gives up those in the earlier ones if
// that takes too long. It returns the turns that are left. No lock is passed on to a set.
func (g *Group) awaitLast(ctx context.Context, t *waiting.Tries, turns []turn) ([]turn, error) {
	until := never
	if len(turns) > 1 {
		until = g.clock.Now() + keepTurns
	}
	for {
		switch why, _ := turns[len(turns)-1].Await(ctx, t, until); why {
		case waiting.MayAttempt:
			return turns, nil
		case waiting.Late:
			for ; len(turns) > 1; turns = turns[1:] {
				turns[0].GiveUp()
			}
			until = never
		default:
			return turns, g.waitedInVain(ctx, t, why)
		}
	}
}

// attempted reports an attempt to the lines in which a set has its turn, and returns the turns
// that it keeps: those up to the line for the key that is wanted, the first that was refused. If a
// hook is called next, the last alone: a hook may block, and others must act meanwhile.
func attempted(turns []turn, wanted int, h Handle, denied uint64, err error, hook bool) []turn {
	n := len(turns)
	for ; n > 0 && turns[n-1].place > wanted && err != nil; n-- { // these were free
		turns[n-1].GiveUp()
	}
	turns = turns[:n]
	for _, w := range turns {
		if err == nil || w.place == wanted {
			w.Attempted(h.hold, denied, err)
		}
	}
	for ; hook && len(turns) > 1; turns = turns[1:] {
		if err != nil {
			turns[0].GiveUp()
		} else {
			turns[0].Leave()
		}
	}
	return turns
}
