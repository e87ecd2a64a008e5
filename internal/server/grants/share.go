package grants

import (
	"context"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/wire/token"
)

// Share is a client's part of a lock that several share. The nodes have a member for each, and no front end but this
// one knows which is whose: only here can its client extend it or give it back.
type Share struct {
	Lock   redlock.Lock
	store  *Store
	name   shareName
	holder string
	stop   func() // ends keeping it alive; nil: it never was
}

// shareName is a key, and the value of one of its clients.
type shareName struct{ key, value string }

// maxShares bounds their table.
const maxShares = 1 << 16

// AcquireShared is AcquireWith for a lock that others may share, each by a value of its own.
func (s *Store) AcquireShared(ctx context.Context, key, value string, ttl time.Duration, o Options) (x *Share, err error) {
	stored, err := s.check(ttl)
	if err != nil {
		return nil, err
	}
	x = &Share{store: s, name: shareName{key, value}, holder: token.HolderFits(o.Holder, value, maxStored)}
	call, with := s.cfg.Client.TryAcquireShared, token.WithValue
	if o.Wait {
		call = s.cfg.Client.AcquireShared
	}
	if o.Keep != nil {
		with = token.WithKeptValue
		if !s.take(o.Keep) {
			return nil, ErrTooMany
		}
		defer func() {
			if err != nil {
				s.give(o.Keep)
			}
		}()
	}
	if s.share(x.name) != nil {
		return nil, ErrValueUsed
	}
	began := time.Time{}
	x.Lock, began, err = s.attempt(with(ctx, x.holder, value), call, key, stored)
	if err == nil && !o.Wait && x.Lock.Remaining() < ttl { // slower than the padding
		err = x.Lock.Extend(ctx, min(stored+2*time.Since(began), s.maxTTL()))
	}
	if err == nil && !s.putShare(x) {
		err = ErrValueUsed
	}
	if err != nil {
		x.Lock.ReleaseAsync()
		return nil, err
	}
	if o.Keep != nil {
		var alive context.Context
		alive, x.stop = x.Lock.KeepAlive(s.kept)
		context.AfterFunc(alive, func() { s.give(o.Keep) })
	}
	return x, nil
}

// share is the present one of a name, or nil.
func (s *Store) share(name shareName) *Share {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.shares[name]; x != nil && x.Lock.Remaining() > 0 {
		return x
	}
	return nil
}

// putShare notes a share, and reports false if there is another of its name, or are too many.
func (s *Store) putShare(x *Share) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.shares) >= maxShares {
		for name, old := range s.shares {
			if old.Lock.Remaining() == 0 {
				delete(s.shares, name)
			}
		}
	}
	if old := s.shares[x.name]; old != nil && old.Lock.Remaining() > 0 || len(s.shares) >= maxShares {
		return false
	}
	s.shares[x.name] = x
	return true
}

// forgetShare drops a share from the table.
func (s *Store) forgetShare(x *Share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shares[x.name] == x {
		delete(s.shares, x.name)
	}
}

// Drop releases a share not needed or not received by its client.
func (x *Share) Drop() {
	x.store.forgetShare(x)
	x.Lock.ReleaseAsync()
}

// ExtendShare gives the share of a client a TTL; one of 0 releases it. ok is false if this process knows no such share.
func (s *Store) ExtendShare(ctx context.Context, key, value string, ttl time.Duration) (outcome Outcome, ok bool, err error) {
	x := s.share(shareName{key, value})
	if x == nil {
		return Absent, false, nil
	}
	if ttl <= 0 {
		err = release(ctx, x.Lock)
	} else {
		stored, refused := s.check(ttl)
		if refused != nil {
			return Absent, true, refused
		}
		err = again(func() error { return x.Lock.Extend(ctx, stored) })
	}
	switch {
	case isGone(err):
		s.forgetShare(x)
		return Absent, true, nil
	case err != nil:
		return Absent, true, err
	case ttl <= 0:
		s.forgetShare(x)
	case x.stop != nil:
		x.stop() // it has an expiry from now on
	}
	return Done, true, nil
}
