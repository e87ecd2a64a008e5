package group

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/quorum"
)

// Handle is a handle on a lock that was acquired: the lease that keeps its state,
// and the life of that lease. It is a small value that may be copied. The zero
// Handle holds nothing, and neither does one whose lock was released.
type Handle struct {
	group *Group
	lease *lease
	life  uint64
}

func (h Handle) state() (s state, ok bool) {
	if h.lease == nil {
		return
	}
	return h.lease.get(h.life)
}

// Key is the locked key, or "".
func (h Handle) Key() string {
	s, _ := h.state()
	return s.key
}

// Token is the proof of who holds the lock, or "".
func (h Handle) Token() string {
	if s, ok := h.state(); ok {
		return s.token.String()
	}
	return ""
}

// Remaining is the validity that is left, or 0.
func (h Handle) Remaining() time.Duration {
	if s, ok := h.state(); ok {
		return h.group.left(s.until)
	}
	return 0
}

// Extend asks the nodes to count ttl from now, where they still hold the lock. A
// wrong ttl is reported before the end of the context, and that before a lock that
// was released or has expired.
func (h Handle) Extend(ctx context.Context, ttl time.Duration) error {
	s, ok := h.state()
	if !ok {
		return engine.ErrNotHeld
	}
	g := h.group
	w, err := g.engine.Call(engine.Extend, s.key, ttl)
	if err != nil {
		return err
	}
	defer g.engine.Free(w)
	ctx = orBackground(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	w.Watch(ctx)
	w.Token = s.token
	slot, err := h.beginExtend(w.TTL)
	if err != nil {
		g.reportUnsentExtend(s.key, err)
		if err == engine.ErrExpired {
			h.reportLost(s.key, err)
		}
		return err
	}
	err = h.extend(ctx, w, slot)
	g.reportAttempt(&w.Op, s.key, err)
	if err == engine.ErrNotHeld || err == engine.ErrExpired {
		h.reportLost(s.key, err)
	}
	return err
}

// beginExtend has the lease know of an extension before a node can: from here on
// validity counts on the earlier of both ends. User code has run since the lease was
// looked at, so it may have been released.
func (h Handle) beginExtend(ttl time.Duration) (slot int, err error) {
	now := h.group.clock.Now()
	switch s, ok := h.state(); {
	case !ok, s.released:
		return -1, engine.ErrNotHeld
	case now >= s.until:
		return -1, engine.ErrExpired
	}
	if slot = h.lease.extending(h.life, quorum.Until(now, ttl)); slot < 0 {
		return -1, engine.ErrNotHeld
	}
	return slot, nil
}

// extend sends an extension. The lease learns the result on every path, the panic of
// a context among them, or the extension would count as under way for ever.
func (h Handle) extend(ctx context.Context, w *engine.Call, slot int) (err error) {
	result := extendUnknown
	defer func() { h.lease.extended(h.life, slot, result) }()
	err = h.group.engine.Do(ctx, w)
	if err == engine.ErrBusy || err == engine.ErrClosed {
		result = extendUnsent
	} else if err == nil {
		switch err = h.group.errorOf(&w.Op); err {
		case nil:
			result = extendWon
		case engine.ErrNotHeld:
			result = extendLost
		}
	}
	return err
}

// Release has the nodes delete the key where it is still ours. Validity ends before
// they are asked: they may apply the release even if its caller gets an error.
// The lease is free for another lock once it is certain that they have.
func (h Handle) Release(ctx context.Context) error {
	s, ok := h.state()
	if !ok {
		return engine.ErrNotHeld
	}
	g := h.group
	w, err := g.engine.Call(engine.Release, s.key, 0)
	if err != nil {
		return err
	}
	defer g.engine.Free(w)
	ctx = orBackground(ctx)
	ended := ctx.Err()
	w.Watch(ctx)
	w.Token, w.Absent = s.token, h.lease.releasing(h.life)
	if ended != nil {
		err = g.engine.Leave(&w.Op)
	} else {
		err = g.engine.Do(ctx, w)
	}
	switch {
	case err == engine.ErrBusy || err == engine.ErrClosed:
		h.lease.unreleased(h.life) // no node has heard of it
	case err == nil && ended != nil:
		err = ended
	case err == nil:
		err = g.errorOf(&w.Op)
	}
	// The loss is looked up before the life ends: after that the lease may already
	// be another lock's.
	lost := err == engine.ErrNotHeld && h.lease.reportLoss(h.life)
	if (err == nil || err == engine.ErrNotHeld) && h.lease.end(h.life) {
		g.leases.Put(h.lease)
	}
	g.reportAttempt(&w.Op, s.key, err)
	if f := g.cfg.OnLockLost; f != nil && lost {
		f(s.key, err)
	}
	return err
}

// left is how long it is until an instant of the group's clock, or 0.
func (g *Group) left(until time.Duration) time.Duration { return max(0, until-g.clock.Now()) }

// orBackground is ctx, or one without an end for nil.
func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}
