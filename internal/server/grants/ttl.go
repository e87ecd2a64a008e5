package grants

import (
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

// Conditions are the conditions of EXPIRE, by name.
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
