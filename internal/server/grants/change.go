package grants

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/wire/token"
)

// Outcome is the result of a change with an owner.
type Outcome uint8

const (
	Done      Outcome = iota
	Absent            // a majority has no lock
	Other             // the lock holds another value
	Unchanged         // the lock is the owner's, and its TTL does not allow the change
)

// Owner is the value named by a change. Anyone is for a command without a value, which acts on the lock shown by a
// quorum, and on no later one.
type Owner struct {
	value, token string
	any          bool
}

// Anyone matches every owner.
var Anyone = Owner{any: true}

// By returns the owner with a value.
func By(value string) Owner { return Owner{value: value} }

// Of returns the owner of one lock seen before, and of no other with the same value.
func Of(seen State) Owner { return Owner{token: seen.token} }

func (o Owner) is(value, token string) bool {
	return o.any || o.token != "" && o.token == token || o.token == "" && o.value == value
}

// Release releases the lock on key if it is its owner's.
func (s *Store) Release(ctx context.Context, key string, owner Owner) (Outcome, error) {
	return s.Extend(ctx, key, owner, TTL{})
}

// errUnchanged ends a change that the lock's TTL does not allow.
var errUnchanged = errors.New("the lock has another TTL")

// Extend gives the lock on key a TTL if it is its owner's. A TTL of 0 or less releases it.
func (s *Store) Extend(ctx context.Context, key string, owner Owner, ttl TTL) (Outcome, error) {
	isReleased, woken := false, s.woken(key)
	outcome, err := s.change(ctx, key, owner, func(g *Grant) (state, error) {
		began := time.Now()
		s.mu.Lock()
		left, ends := g.left(), g.ends
		s.mu.Unlock()
		n, forever := ttl.Value, g.isKept() || g.isKeptElsewhere
		if ttl.Rest && !forever {
			n += left
		}
		switch {
		case ttl.If != nil && !ttl.If(ttl.Value, left, forever):
			return held, errUnchanged
		case n <= 0:
			err := release(ctx, g.Lock)
			isReleased = err == nil
			switch {
			case isGone(err):
				return lost, err
			case err != nil:
				return doubtful, err
			}
			return ended, nil
		case g.isKeptElsewhere:
			return held, ErrKept
		}
		stored, err := s.check(n)
		if err != nil {
			return held, err
		}
		if err = again(func() error { return g.Lock.Extend(ctx, stored) }); err == nil {
			err = g.last(ctx, n, stored, began)
		}
		switch {
		case isGone(err):
			return lost, err
		case err != nil:
			return held, err // a lock without an expiry has none still
		}
		if ttl.Rest && !forever {
			g.set(ends.Add(ttl.Value), stored) // repeated additions add exactly
		}
		if g.isKept() {
			g.stop() // it has an expiry from now on
		}
		return held, nil
	})
	if isReleased && err == nil {
		s.freed(key, woken)
	}
	if errors.Is(err, errUnchanged) {
		return Unchanged, nil
	}
	return outcome, err
}

// release releases a lock. A release without a quorum may have worked: if the second one finds no lock, and the lock
// would still be valid, the first has released it. A lock no longer valid may have ended before the release: then only
// the first error is known.
func release(ctx context.Context, lock redlock.Lock) error {
	valid, unknown := time.Now().Add(lock.Remaining()), error(nil)
	err := again(func() error {
		err := lock.Release(ctx)
		if errors.Is(err, redlock.ErrNoQuorum) {
			unknown = err
		}
		return err
	})
	switch {
	case unknown == nil || !isGone(err):
		return err
	case time.Now().Before(valid):
		return nil
	}
	return unknown
}

// change makes a change to the lock on key if it is its owner's: to the lock in the table or, if another front end has
// ended this one, to the lock shown by the nodes. A lock that ends at the very time of the change is "not there", and
// its successor is left alone.
func (s *Store) change(ctx context.Context, key string, owner Owner, do func(g *Grant) (state, error)) (Outcome, error) {
	g := s.current(key, owner)
	for isKnown := g != nil; ; {
		if !isKnown {
			var outcome Outcome
			var err error
			if g, outcome, err = s.find(ctx, key, owner); g == nil {
				return outcome, err
			}
		}
		switch is, err := g.begin(ctx); {
		case err != nil:
			return Absent, err
		case is == lost && isKnown:
			isKnown = false
			continue
		case is != changing:
			return Absent, nil
		}
		to, err := do(g)
		isInTime := g.finish(to)
		switch {
		case isGone(err) && isKnown && isInTime:
			isKnown = false
		case isGone(err):
			return Absent, nil
		case err == nil && to == held && !isInTime: // extended too late
			g.Lock.ReleaseAsync()
			return Absent, nil
		default:
			if err == nil && to == held {
				s.adopt(g)
			}
			return Done, err
		}
	}
}

// current returns the grant in the table to be changed, or nil. For a grant in doubt the nodes are asked.
func (s *Store) current(key string, owner Owner) *Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.table[key]; g != nil && owner.is(g.value, g.token) && g.state <= changing && !g.isOver() {
		return g
	}
	return nil
}

// find returns the grant of the lock shown by the nodes, or the reason why its owner cannot change it.
func (s *Store) find(ctx context.Context, key string, owner Owner) (*Grant, Outcome, error) {
	asked := time.Now()
	seen, err := s.Look(ctx, key)
	switch {
	case err != nil:
		return nil, Absent, err
	case !seen.Held:
		return nil, Absent, nil
	case seen.isShared && owner.any:
		return nil, Other, ErrShared
	case seen.isShared, !owner.is(seen.Value, seen.token):
		return nil, Other, nil
	case seen.isEternal:
		return nil, Other, ErrEternal
	}
	lock, err := s.cfg.Client.Attach(ctx, key, seen.token, seen.stays)
	if isGone(err) || err != nil && time.Now().After(seen.stays) {
		return nil, Absent, nil
	} else if err != nil {
		return nil, Absent, err
	}
	return s.adopt(&Grant{
		Lock: lock, store: s, value: seen.Value, holder: token.HolderIn(seen.token), token: seen.token, isKeptElsewhere: seen.Kept,
		isAdopted: true, ends: asked.Add(seen.TTL), stays: seen.stays.Add(time.Since(asked)),
	}), Done, nil
}

// isGone reports whether an error means that the lock is gone.
func isGone(err error) bool {
	return errors.Is(err, redlock.ErrNotHeld) || errors.Is(err, redlock.ErrExpired)
}
