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

func (h Hold) get() (key string, t token.Token, until time.Duration, ok bool) {
	if h.lease == nil {
		return
	}
	return h.lease.Get(h.life)
}

// Key is the locked key, or "".
func (h Hold) Key() string {
	key, _, _, _ := h.get()
	return key
}

// Token is what proves who holds the lock, or "".
func (h Hold) Token() string {
	if _, t, _, ok := h.get(); ok {
		return t.String()
	}
	return ""
}

// Remaining is the validity that is left, or 0.
func (h Hold) Remaining() time.Duration {
	if _, _, until, ok := h.get(); ok {
		return h.session.Left(until)
	}
	return 0
}

// Extend asks the nodes to count ttl from now, where they still hold the lock.
func (h Hold) Extend(ctx context.Context, ttl time.Duration) error {
	key, t, until, ok := h.get()
	if !ok {
		return engine.ErrNotHeld
	}
	s := h.session
	w := s.engine.Call(engine.Extend, key, ttl)
	defer s.engine.Free(w)
	if err := s.engine.Check(&w.Op); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	now := s.clock.Now()
	if now >= until {
		s.overdue(key)
		h.lost(key, engine.ErrExpired)
		return engine.ErrExpired
	}
	w.Token = t
	h.lease.Extending(h.life, quorum.Until(now, w.TTL))
	err := s.engine.Do(ctx, w)
	if err == engine.ErrBusy || err == engine.ErrClosed {
		h.lease.Unextended(h.life)
		s.over(&w.Op, key, err)
		return err
	}
	if err == nil {
		err = s.Explain(&w.Op)
	}
	if h.lease.Extended(h.life, err == nil); err == engine.ErrNotHeld {
		h.lease.Lose(h.life)
	}
	s.over(&w.Op, key, err)
	if err == engine.ErrNotHeld || err == engine.ErrExpired {
		h.lost(key, err)
	}
	return err
}

// Release has the nodes delete the key where it is still ours. The lease is
// free for another lock once that is certain.
func (h Hold) Release(ctx context.Context) error {
	key, t, _, ok := h.get()
	if !ok {
		return engine.ErrNotHeld
	}
	s := h.session
	w := s.engine.Call(engine.Release, key, 0)
	defer s.engine.Free(w)
	w.Token, w.Absent = t, h.lease.Absent(h.life)
	known := s.hooks.LockLost == nil || h.lease.Told(h.life, true)
	err := s.engine.Do(ctx, w)
	if err == nil {
		err = s.Explain(&w.Op)
	}
	if (err == nil || err == engine.ErrNotHeld) && h.lease.End(h.life) {
		s.leases.Put(h.lease)
	}
	s.over(&w.Op, key, err)
	switch {
	case err == engine.ErrBusy:
		h.lease.Told(h.life, known) // nothing was given back
	case err == engine.ErrNotHeld && !known:
		s.hooks.LockLost(key, err)
	}
	return err
}
