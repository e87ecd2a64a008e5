package session

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/internal/token"
	"github.com/redlock-go/redlock/quorum"
)

// Hold is a handle on a lock that was acquired: which lease it is kept in, and
// which life of that lease. The zero Hold, and one whose lock was released,
// holds nothing.
type Hold struct {
	session *Session
	lease   *lease.Lease
	life    uint64
}

func (h Hold) get() (key string, t token.Token, until time.Duration, released, ok bool) {
	if h.lease == nil {
		return
	}
	return h.lease.Get(h.life)
}

// Key is the locked key, or "".
func (h Hold) Key() string {
	key, _, _, _, _ := h.get()
	return key
}

// Token is what proves who holds the lock, or "".
func (h Hold) Token() string {
	if _, t, _, _, ok := h.get(); ok {
		return t.String()
	}
	return ""
}

// Remaining is the validity that is left, or 0.
func (h Hold) Remaining() time.Duration {
	if _, _, until, _, ok := h.get(); ok {
		return h.session.Left(until)
	}
	return 0
}

// Extend asks the nodes to count ttl from now, where they still hold the lock.
func (h Hold) Extend(ctx context.Context, ttl time.Duration) error {
	key, t, until, released, ok := h.get()
	if !ok {
		return engine.ErrNotHeld
	}
	s := h.session
	w := s.engine.Call(engine.Extend, key, ttl)
	defer s.engine.Free(w)
	if err := s.engine.Check(&w.Op); err != nil {
		return err
	}
	ctx = orBackground(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	switch {
	case released:
		s.unasked(key, engine.ErrNotHeld)
		return engine.ErrNotHeld
	case s.clock.Now() >= until:
		s.unasked(key, engine.ErrExpired)
		h.lost(key, engine.ErrExpired)
		return engine.ErrExpired
	}
	w.Token = t
	slot := h.lease.Extending(h.life, quorum.Until(s.clock.Now(), w.TTL))
	result := lease.Unknown
	err := s.engine.Do(ctx, w)
	if err == engine.ErrBusy || err == engine.ErrClosed {
		result = lease.Unsent
	} else if err == nil {
		switch err = s.Explain(&w.Op); err {
		case nil:
			result = lease.Won
		case engine.ErrNotHeld:
			result = lease.Lost
		}
	}
	h.lease.Extended(h.life, slot, result)
	s.over(&w.Op, key, err)
	if err == engine.ErrNotHeld || err == engine.ErrExpired {
		h.lost(key, err)
	}
	return err
}

// Release has the nodes delete the key where it is still ours. Validity ends before
// they are asked, for they may apply the release whatever its caller hears of it.
// The lease is free for another lock once it is certain that they have.
func (h Hold) Release(ctx context.Context) error {
	key, t, _, _, ok := h.get()
	if !ok {
		return engine.ErrNotHeld
	}
	ctx = orBackground(ctx)
	s := h.session
	w := s.engine.Call(engine.Release, key, 0)
	defer s.engine.Free(w)
	ended := ctx.Err()
	w.Token, w.Absent = t, h.lease.Releasing(h.life)
	var err error
	if ended != nil {
		err = s.engine.Leave(&w.Op)
	} else {
		err = s.engine.Do(ctx, w)
	}
	switch {
	case err == engine.ErrBusy || err == engine.ErrClosed:
		h.lease.Unreleased(h.life) // no node has heard of it
	case err == nil && ended != nil:
		err = ended
	case err == nil:
		err = s.Explain(&w.Op)
	}
	lost := err == engine.ErrNotHeld && h.lease.Report(h.life)
	if (err == nil || err == engine.ErrNotHeld) && h.lease.End(h.life) {
		s.leases.Put(h.lease)
	}
	s.over(&w.Op, key, err)
	if f := s.hooks.LockLost; f != nil && lost {
		f(key, err)
	}
	return err
}

// orBackground is ctx, or one without an end for nil.
func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}
