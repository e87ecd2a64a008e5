package grants

import (
	"context"
	"time"

	"github.com/redlock-go/redlock"
)

// Share is a client's part of a lock shared by several. The nodes have a member for each, and only this front end knows
// the client of each: only here can the client extend it or give it back.
type Share struct {
	Lock   redlock.Lock
	store  *Store
	name   shareName
	holder string
	stop   func() // ends keeping it alive; nil: it has never been kept

	// Guarded by store.mu.
	ends time.Time   // for its client; zero: it is kept alive
	end  *time.Timer // gives it back at that end: no extension shortens it at the nodes
}

// shareName is a key, and the value of one of its clients.
type shareName struct{ key, value string }

// maxShares bounds the table of shares.
const maxShares = 1 << 16

// AcquireShared is AcquireWith for a lock shared with others, each by a value of its own.
func (s *Store) AcquireShared(ctx context.Context, key, value string, ttl time.Duration, o Options) (x *Share, err error) {
	stored, tail, holder, err := s.prepare(ctx, value, ttl, &o)
	if err != nil {
		return nil, err
	}
	defer s.giveUnless(&err, o.Keep)
	call := s.cfg.Client.TryAcquireShared
	if o.Wait {
		call = s.cfg.Client.AcquireShared
	}
	x = &Share{store: s, name: shareName{key, value}, holder: holder}
	if old := s.share(x.name); old != nil {
		if !isGone(old.Lock.Extend(ctx, redlock.MinTTL)) { // this shortens nothing: an operator may have broken the lock
			return nil, ErrValueUsed
		}
		old.forget()
	}
	began := time.Time{}
	x.Lock, began, err = s.attempt(tail, call, key, stored)
	if err != nil {
		return nil, err
	}
	if o.Wait {
		began = time.Now() // the rest was spent in line
	}
	_, err = s.lengthen(ctx, x.Lock, ttl, began)
	var alive context.Context
	if err == nil && o.Keep != nil { // before others find it
		alive, x.stop = x.Lock.KeepAlive(s.kept)
	}
	if err == nil && !x.put() {
		err = ErrValueUsed
	}
	if err != nil {
		x.Lock.ReleaseAsync()
		return nil, err
	}
	if alive != nil {
		context.AfterFunc(alive, func() { s.give(o.Keep) })
	} else if !x.set(time.Now().Add(ttl)) {
		return nil, ErrValueUsed
	}
	return x, nil
}

// share returns the present share of a name, or nil.
func (s *Store) share(name shareName) *Share {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.shares[name]; x != nil && x.left() > 0 {
		return x
	}
	return nil
}

// left is the rest of a share for its client. store.mu is held.
func (x *Share) left() time.Duration {
	left := x.Lock.Remaining()
	if !x.ends.IsZero() {
		left = min(left, time.Until(x.ends))
	}
	return max(0, left)
}

// put notes a share, and reports false if another has its name, or there are too many.
func (x *Share) put() bool {
	s := x.store
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.shares[x.name]
	if old != nil && old.left() > 0 || old == nil && len(s.shares) >= maxShares {
		return false
	}
	s.shares[x.name] = x
	return true
}

// set notes the end of the client's time. The share is given back then. It is false if that has happened already.
func (x *Share) set(ends time.Time) (isInTime bool) {
	s := x.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shares[x.name] != x {
		return false
	}
	if x.end != nil {
		x.end.Stop()
	}
	x.ends = ends
	x.end = time.AfterFunc(time.Until(ends), x.expire)
	return true
}

// expire gives a share back at the end of its time, unless it was extended just now.
func (x *Share) expire() {
	s := x.store
	s.mu.Lock()
	isOver := s.shares[x.name] == x && !time.Now().Before(x.ends)
	if isOver {
		delete(s.shares, x.name)
	}
	s.mu.Unlock()
	if isOver {
		x.Lock.ReleaseAsync()
	}
}

// forget drops a share from the table.
func (x *Share) forget() {
	s := x.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shares[x.name] == x {
		delete(s.shares, x.name)
	}
	if x.end != nil {
		x.end.Stop()
	}
}

// Drop releases a share not needed or not received by its client.
func (x *Share) Drop() {
	x.forget()
	x.Lock.ReleaseAsync()
}

// ExtendShare gives the share of a client a TTL; a TTL of 0 releases it. ok is false if this process knows no such
// share, or the nodes no longer have it: the client may have another lock by the same value.
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
		began := time.Now()
		err = again(func() error { return x.Lock.Extend(ctx, stored) })
		if err == nil {
			_, err = s.lengthen(ctx, x.Lock, ttl, began)
		}
	}
	switch {
	case isGone(err):
		x.forget()
		return Absent, false, nil
	case err != nil:
		return Absent, true, err
	case ttl <= 0:
		x.forget()
		return Done, true, nil
	case x.stop != nil:
		x.stop() // it has an expiry from now on
	}
	if !x.set(time.Now().Add(ttl)) { // extended too late
		return Absent, true, nil
	}
	return Done, true, nil
}
