package grants

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock"
)

// Outcome is how a change with an owner has ended.
type Outcome uint8

const (
	Done      Outcome = iota
	Absent            // a majority has no lock
	Other             // the lock holds another value
	Unchanged         // the lock is the owner's, and its TTL does not allow the change
)

// Owner is the value named by a change, or Anyone, for a command without one: this acts on the lock
// shown by a quorum, and on no later one.
type Owner struct {
	value, token string
	any          bool
}

// Anyone is every owner.
var Anyone = Owner{any: true}

// By is the owner with a value.
func By(value string) Owner { return Owner{value: value} }

// Of is the owner of one lock seen before, and of no other with the same value.
func Of(seen State) Owner { return Owner{token: seen.token} }

func (o Owner) is(value, token string) bool {
	return o.any || o.token != "" && o.token == token || o.token == "" && o.value == value
}

// owns reports whether a grant is the owner's.
func (o Owner) owns(g *Grant) bool {
	token := ""
	if o.token != "" { // reading it allocates
		token = g.Lock.Token()
	}
	return o.is(g.value, token)
}

// Release releases the lock on key if it is its owner's.
func (s *Store) Release(ctx context.Context, key string, owner Owner) (Outcome, error) {
	return s.Extend(ctx, key, owner, TTL{})
}

// errUnchanged ends a change not allowed by the lock's TTL.
var errUnchanged = errors.New("the lock has another TTL")

// Extend gives the lock on key a TTL if it is its owner's. A TTL of 0 or less releases it.
func (s *Store) Extend(ctx context.Context, key string, owner Owner, ttl TTL) (Outcome, error) {
	isReleased, woken := false, s.woken(key)
	outcome, err := s.change(ctx, key, owner, func(g *Grant) (err error) {
		n, forever, began := ttl.Value, g.isKept() || g.isKeptElsewhere, time.Now()
		left, ends := g.left(), began.Add(g.left())
		if ttl.Rest && !forever {
			n += left
		}
		switch {
		case ttl.If != nil && !ttl.If(ttl.Value, left, forever):
			return errUnchanged
		case n <= 0:
			if err = release(ctx, g.Lock); err == nil || errors.Is(err, redlock.ErrNotHeld) {
				s.remove(key, g)
			}
			isReleased = err == nil
			return err
		case g.isKeptElsewhere:
			return ErrKept
		}
		stored, err := s.check(n)
		if err != nil {
			return err
		}
		if err := again(func() error { return g.Lock.Extend(ctx, stored) }); err != nil {
			return err // a lock without an expiry has none still
		}
		if err := g.last(ctx, n, began); err != nil {
			return err
		}
		if ttl.Rest && !forever {
			g.set(ends.Add(ttl.Value)) // repeated additions add exactly
		}
		if g.isKept() {
			g.stop() // it has an expiry from now on
		}
		s.put(key, g)
		return nil
	})
	if isReleased && err == nil {
		s.freed(key, woken)
	}
	if errors.Is(err, errUnchanged) {
		return Unchanged, nil
	}
	return outcome, err
}

// release releases a lock. A release without a quorum may have worked: if the second finds no lock,
// and the lock would be valid still, the first has released it. A lock no longer valid may have
// ended before the release: then nothing is known but the first error.
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

// changes bounds the new starts of a change whose lock has got another holder meanwhile.
const changes = 3

// change makes a change to the lock on key if it is its owner's: to the one in the table, or, if
// the nodes do not have it, to the one they show.
func (s *Store) change(ctx context.Context, key string, owner Owner, do func(g *Grant) error) (Outcome, error) {
	if g := s.get(key); g != nil && owner.owns(g) && !g.hasEnded() {
		if err := do(g); !isGone(err) {
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
		case seen.isShared && owner.any:
			return Other, ErrShared
		case seen.isShared, !owner.is(seen.Value, seen.token):
			return Other, nil
		case seen.isEternal:
			return Other, ErrEternal
		}
		ends := asked.Add(seen.TTL)
		lock, err := s.cfg.Client.Attach(ctx, key, seen.token, ends)
		if err == nil {
			err = do(&Grant{Lock: lock, store: s, value: seen.Value, ends: ends, isKeptElsewhere: seen.Kept})
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
