package grants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/quorum"
)

// The padding is the hidden part of a TTL at the nodes: the time a grant takes, as a rule. It is
// elastic: a later grant is extended by the measured time.
const (
	shortPart  = 20  // of a short TTL at most, as the nodes' time to answer
	longPart   = 128 // of a long one, beyond minPadding
	minPadding = 50 * time.Millisecond
)

func padding(ttl time.Duration) time.Duration {
	return min(ttl/shortPart, minPadding+ttl/longPart)
}

// Stored returns the TTL at the nodes for a client's ttl: with the padding and the drift.
func Stored(ttl time.Duration) time.Duration {
	n := (ttl + padding(ttl) + quorum.Drift(0)) * 100 / 99
	return max((n + time.Millisecond - 1).Truncate(time.Millisecond), redlock.MinTTL)
}

// Shown is the inverse of Stored: the client's rest of a lock with this left at the nodes.
func Shown(left time.Duration) time.Duration {
	left -= quorum.Drift(left)
	return max(0, left*shortPart/(shortPart+1), (left-minPadding)*longPart/(longPart+1))
}

// TTL is a time to live set by a client.
type TTL struct {
	Value time.Duration
	Rest  bool      // Value is added to the rest
	If    Condition // nil: always
}

// Condition reports whether ttl may be set on a lock with this left, or without an expiry.
type Condition func(ttl, left time.Duration, forever bool) bool

// Conditions are those of EXPIRE, by name.
var Conditions = map[string]Condition{
	"GT": func(ttl, left time.Duration, forever bool) bool { return !forever && ttl > left },
	"LT": func(ttl, left time.Duration, forever bool) bool { return forever || ttl < left },
	"NX": func(_, _ time.Duration, forever bool) bool { return forever },
	"XX": func(_, _ time.Duration, forever bool) bool { return !forever },
}

func (s *Store) maxTTL() time.Duration {
	if s.cfg.MaxTTL <= 0 {
		return redlock.MaxTTL
	}
	return s.cfg.MaxTTL
}

// check returns the TTL to store.
func (s *Store) check(ttl time.Duration) (time.Duration, error) {
	limit := s.maxTTL()
	if ttl <= 0 {
		return 0, fmt.Errorf("%w: it is %v", ErrTTL, ttl)
	}
	stored := Stored(min(ttl, 2*limit)) // a far longer one would overflow
	if stored > limit {
		return 0, fmt.Errorf("%w: it is %v, at most %v works; MaxTTL is %v, and nodes keep a lock for longer than its client",
			ErrTTL, ttl, Shown(limit).Truncate(time.Millisecond), limit)
	}
	return stored, nil
}

// again makes a call once more after a failure for want of a quorum. Nodes busy for longer than
// their time answer then, and silent ones cost that time.
func again(call func() error) error {
	err := call()
	if errors.Is(err, redlock.ErrNoQuorum) {
		err = call()
	}
	return err
}

// last makes ttl the time of a grant's client from now on. A grant with less left at the nodes was
// slower than the padding: it is extended once, by the time taken since began. A lock with less
// even so is the client's for as long as it lasts.
func (g *Grant) last(ctx context.Context, ttl time.Duration, began time.Time) error {
	if g.Lock.Remaining() < ttl {
		longer := min(Stored(ttl)+2*time.Since(began), g.store.maxTTL())
		if err := g.Lock.Extend(ctx, longer); isGone(err) || err != nil && g.Lock.Remaining() == 0 {
			return err
		}
	}
	g.set(time.Now().Add(ttl))
	return nil
}

// set notes when the time of the client ends. No extension shortens a key at the nodes: where they
// keep the lock for much longer, it is released then.
func (g *Grant) set(ends time.Time) {
	s := g.store
	s.mu.Lock()
	defer s.mu.Unlock()
	g.ends = ends
	if g.end != nil {
		g.end.Stop()
		g.end = nil
	}
	if left := time.Until(ends); g.Lock.Remaining() > left+minPadding+left/shortPart {
		g.end = time.AfterFunc(left, func() {
			key := g.Lock.Key()
			woken := s.woken(key)
			g.Drop()
			s.freed(key, woken)
		})
	}
}

// left is the rest of a grant for the client.
func (g *Grant) left() time.Duration {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	return max(0, min(time.Until(g.ends), g.Lock.Remaining()))
}

// hasEnded reports whether a grant has ended for its client.
func (g *Grant) hasEnded() bool { return !g.isKept() && g.left() == 0 }
