package group

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/renewal"
)

// keep has the lease know of its entry, and returns its state, or why the lock cannot be
// kept alive.
func (h Handle) keep(e *entry) (state, error) {
	s, ok := h.state()
	switch {
	case !ok || s.released:
		return s, engine.ErrNotHeld
	case s.ttl < renewal.MinTTL:
		return s, engine.WrongArgument("ttl is %v; to keep a lock alive takes %v at least", s.ttl, renewal.MinTTL)
	case h.group.left(s.until) == 0:
		return s, engine.ErrExpired
	}
	if s, ok = h.lease.keep(h.life, e); !ok {
		return s, engine.WrongArgument("lock is kept alive already, or was released")
	}
	return s, nil
}

// limit is when a lock that is kept alive from now on is not any more.
func (g *Group) limit() time.Duration {
	if g.cfg.MaxHold == 0 {
		return never
	}
	return g.clock.Now() + g.cfg.MaxHold
}

// KeepAliveFunc keeps the lock alive until it is stopped, released or lost. lost is told
// of the latter, by the goroutine of callbacks; it may be nil.
func (h Handle) KeepAliveFunc(lost func(error)) error {
	if h.lease == nil {
		return engine.ErrNotHeld
	}
	_, err := h.group.keeper.add(h, h.group.limit(), lost, true)
	return err
}

// StopKeepAlive ends that a lock is kept alive.
func (h Handle) StopKeepAlive() {
	if h.lease == nil {
		return
	}
	if e := h.lease.keptBy(h.life); e != nil {
		h.group.keeper.stop(e, h, engine.ErrStopped)
	}
}

// KeepAlive keeps the lock alive until its context ends: by stop, with ctx, or because
// the lock is lost. The context has ended already if that is impossible.
func (h Handle) KeepAlive(ctx context.Context) *Kept {
	k := &Kept{handle: h, user: orBackground(ctx)}
	k.Context, k.cancel = context.WithCancelCause(detached{k.user})
	if h.lease == nil {
		k.cancel(engine.ErrNotHeld)
		return k
	}
	if k.user.Err() != nil {
		k.cancel(context.Cause(k.user))
		return k
	}
	e, err := h.group.keeper.add(h, h.group.limit(), k.ended, false)
	if err != nil {
		k.cancel(err)
		return k
	}
	k.entry = e
	detach := context.AfterFunc(k.user, k.userEnded)
	if k.detach.Store(&detach); k.Context.Err() != nil {
		detach() // ended may have come before
	}
	return k
}

// Kept is the context of a lock that is kept alive.
//
// It is cut off from the cancellation of the user's context, which is passed on by
// userEnded: to cancel a context of the standard library takes it off its parent, which
// may be user code, and the keeper must not call that.
type Kept struct {
	context.Context
	cancel context.CancelCauseFunc
	user   context.Context
	handle Handle
	entry  *entry // nil: it was never kept alive
	detach atomic.Pointer[func() bool]
}

// Err looks at the clock itself, and at the user's context, so that a function that asks
// after a pause is told the truth although no goroutine of ours has run since.
func (k *Kept) Err() error {
	err := k.Context.Err()
	if err != nil || k.entry == nil {
		return err
	}
	if k.user.Err() != nil {
		k.userEnded()
	} else if s, ok := k.handle.state(); ok {
		if clock.Sync(); k.handle.group.left(s.until) == 0 {
			k.handle.group.keeper.expire(k.entry, k.handle)
		}
	}
	return k.Context.Err()
}

// Stop ends that the lock is kept alive, and the context. To call it twice does nothing.
func (k *Kept) Stop() {
	if k.entry != nil {
		k.letGo()
		k.handle.group.keeper.stop(k.entry, k.handle, engine.ErrStopped)
	}
	k.cancel(engine.ErrStopped) // unless it has ended before
}

// Lost is why the lock was lost while it was kept alive, or could not be kept alive, or
// nil.
func (k *Kept) Lost() error {
	switch cause := context.Cause(k.Context); {
	case cause == nil, cause == engine.ErrStopped, k.user.Err() != nil && cause == context.Cause(k.user):
		return nil
	default:
		return cause
	}
}

// userEnded passes on the end of the user's context.
func (k *Kept) userEnded() {
	k.cancel(context.Cause(k.user))
	k.Stop()
}

// ended is told by the keeper, or by Close. To detach asks the user's context, which may
// call Close and wait for them: a goroutine of its own does it.
func (k *Kept) ended(cause error) {
	k.cancel(cause)
	go k.letGo()
}

// letGo detaches from the user's context. KeepAlive does it where this came too early.
func (k *Kept) letGo() {
	if detach := k.detach.Load(); detach != nil {
		(*detach)()
	}
}

// detached is the user's context without its cancellation. Unlike that of
// context.WithoutCancel it keeps its deadline.
type detached struct{ context.Context }

func (detached) Done() <-chan struct{} { return nil }
func (detached) Err() error            { return nil }

// Do calls f with a context that ends with the lock. It releases the lock in every case.
func (g *Group) Do(ctx context.Context, key string, ttl time.Duration, f func(context.Context) error) (err error) {
	if ttl < renewal.MinTTL {
		return engine.WrongArgument("ttl is %v; Do needs %v at least, to keep the lock alive", ttl, renewal.MinTTL)
	}
	if f == nil {
		return engine.WrongArgument("Do was given no function")
	}
	ctx = orBackground(ctx)
	h, err := g.Acquire(ctx, key, ttl)
	if err != nil {
		return err
	}
	returned := false
	kept := h.KeepAlive(ctx)
	defer func() {
		lost := kept.Lost()
		kept.Stop()
		released := h.Release(ctx)
		if released == engine.ErrNotHeld && lost == nil && returned {
			lost = released
		}
		if lost != nil {
			err = errors.Join(err, lost)
		}
	}()
	err = f(kept)
	returned = true
	return err
}
