package grants

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/token"
)

// Outcome is how a change that names a value has ended.
type Outcome uint8

const (
	Done      Outcome = iota
	Absent            // a majority has no lock
	Other             // the lock holds another value
	Unchanged         // it is the owner's, and has longer than a TTL.Longer
)

// Owner is the value that a change names, or Anyone, for a command that names none: it acts on the
// lock that a quorum shows, and on no later one.
type Owner struct {
	value, token string
	any          bool
}

// Anyone is every owner.
var Anyone = Owner{any: true}

// By is the owner with a value.
func By(value string) Owner { return Owner{value: value} }

// Of is the owner of one lock that was seen, and of no other with the same value.
func Of(seen State) Owner { return Owner{token: seen.token} }

func (o Owner) is(value, token string) bool {
	return o.any || o.token != "" && o.token == token || o.token == "" && o.value == value
}

// owns reports whether a grant is the owner's.
func (o Owner) owns(g *Grant) bool {
	token := ""
	if o.token != "" { // to show it allocates
		token = g.Lock.Token()
	}
	return o.is(g.value, token)
}

// TTL is a time to live that a client sets.
type TTL struct {
	Value  time.Duration
	Rest   bool // Value is added to what is left
	Longer bool // a lock that has as long or longer is left as it is: Unchanged
}

// Release releases the lock on key if it is its owner's.
func (s *Store) Release(ctx context.Context, key string, owner Owner) (Outcome, error) {
	outcome, err := s.change(ctx, key, owner, func(g *Grant, _ time.Duration) error {
		err := g.Lock.Release(ctx)
		if err == nil || errors.Is(err, redlock.ErrNotHeld) {
			s.remove(key, g)
		}
		return err
	})
	if outcome == Done && err == nil {
		s.freed(key)
	}
	return outcome, err
}

// errLonger ends a change that would shorten the lock.
var errLonger = errors.New("the lock has longer")

// Extend gives the lock on key a TTL if it is its owner's. One of no more than 0 releases it.
func (s *Store) Extend(ctx context.Context, key string, owner Owner, ttl TTL) (Outcome, error) {
	if !ttl.Rest && !ttl.Longer && ttl.Value <= 0 {
		return s.Release(ctx, key, owner)
	}
	outcome, err := s.change(ctx, key, owner, func(g *Grant, left time.Duration) error {
		n := ttl.Value
		if ttl.Rest {
			n += left
		}
		switch {
		case ttl.Longer && (left >= n || g.isKept() || g.isKeptElsewhere): // one without an expiry has longer than any
			return errLonger
		case g.isKeptElsewhere:
			return ErrKept
		}
		padded, err := s.check(n)
		if err != nil {
			return err
		}
		if err := extend(ctx, g.Lock, padded, n); err != nil {
			return err // a lock without an expiry has none still
		}
		s.shorten(key, g, n, padded)
		if g.isKept() {
			g.stop() // it has an expiry from now on
		}
		s.put(key, g)
		return nil
	})
	if errors.Is(err, errLonger) {
		return Unchanged, nil
	}
	return outcome, err
}

// shorten has a lock released after n, if the nodes keep it for longer than its padding: no extension
// shortens a key there.
func (s *Store) shorten(key string, g *Grant, n, padded time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.end != nil {
		g.end.Stop()
		g.end = nil
	}
	if g.Lock.Remaining() > padded {
		g.ends = time.Now().Add(n)
		g.end = time.AfterFunc(n, func() { _, _ = s.Release(s.kept, key, Of(State{token: g.Lock.Token()})) })
	}
}

// left is what a client has left of a lock, of the validity that the nodes give it.
func (s *Store) left(g *Grant, validity time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.end == nil {
		return validity
	}
	return max(0, min(validity, time.Until(g.ends)))
}

// changes bounds how often a change begins anew because the lock has another holder meanwhile.
const changes = 3

// change makes a change to the lock on key if it is its owner's: to the one in the table, and if
// the nodes do not have that, to the one that they show.
func (s *Store) change(ctx context.Context, key string, owner Owner, do func(g *Grant, left time.Duration) error) (Outcome, error) {
	if g := s.get(key); g != nil && owner.owns(g) {
		if err := do(g, s.left(g, g.Lock.Remaining())); !isGone(err) {
			return Done, err
		}
		s.remove(key, g)
	}
	for range changes {
		asked := time.Now()
		seen, err := s.Look(ctx, key)
		switch {
		case err != nil:
			return Absent, err
		case !seen.Held:
			return Absent, nil
		case !owner.is(seen.Value, seen.token):
			return Other, nil
		case seen.isEternal:
			return Other, ErrEternal
		case time.Since(asked) >= seen.TTL:
			continue // it ends now
		}
		lock, err := s.cfg.Client.Attach(ctx, key, seen.token, asked.Add(seen.TTL))
		if err == nil {
			err = do(&Grant{Lock: lock, store: s, value: seen.Value, isKeptElsewhere: token.IsKept(seen.token)}, seen.TTL)
		}
		if !isGone(err) {
			return Done, err
		}
	}
	return Absent, nil
}

// isGone reports whether an error means that the lock is not there any more.
func isGone(err error) bool {
	return errors.Is(err, redlock.ErrNotHeld) || errors.Is(err, redlock.ErrExpired)
}
