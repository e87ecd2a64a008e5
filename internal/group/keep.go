package group

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

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

// KeepAliveFunc keeps the lock alive until it is stopped, released or lost. lost is told
// of the latter, by the goroutine of callbacks; it may be nil.
func (h Handle) KeepAliveFunc(lost func(error)) error {
	if h.lease == nil {
		return engine.ErrNotHeld
	}
	return h.group.keeper.addFunc(h, never, lost)
}

// StopKeepAlive ends that a lock is kept alive.
func (h Handle) StopKeepAlive() {
	if s, ok := h.state(); ok {
		h.stopKeeping(&s)
	}
}

// KeepAlive keeps the lock alive until its context ends: by stop, with ctx, or because
// the lock is lost. The context has ended already if that is impossible.
//
// The user's context is asked before the keeper knows of the lock: it is user code and
// may panic, and then nothing was begun. Its end may come at any time from then on, also
// before the keeper has the entry; so it is looked at again behind that.
func (h Handle) KeepAlive(ctx context.Context) *Kept {
	k := &Kept{handle: h, user: orBackground(ctx)}
	k.source.Context = k.user
	k.Context, k.cancel = context.WithCancelCause(&k.source)
	k.entry.place = renewal.Nowhere
	if h.lease == nil {
		k.ended(engine.ErrNotHeld)
		return k
	}
	if k.user.Err() != nil {
		k.endWith(k.user)
		return k
	}
	k.detach = context.AfterFunc(&parent{Context: k.user, done: k.user.Done()}, k.userEnded)
	if err := h.group.keeper.add(h, &k.entry, never, k.ended); err != nil {
		k.ended(err)
		return k
	}
	if k.Context.Err() != nil {
		h.group.keeper.stop(&k.entry, h, engine.ErrStopped)
	}
	return k
}

// Kept is the context of a lock that is kept alive.
//
// It is derived from a source, and not from the user's context: to cancel a context of the
// standard library takes it off its parent, which may be user code, and the keeper must not
// call that. The end of the user's context is passed on to the source by userEnded.
type Kept struct {
	context.Context
	cancel context.CancelCauseFunc
	source source
	user   context.Context
	handle Handle
	entry  entry // no other lock's, ever: to stop it late does no harm
	detach func() bool
	lost   atomic.Pointer[error] // what the keeper has told
}

// fenceKey is that of the fencing token in the context of a lock that is kept alive.
type fenceKey struct{}

// Value has the lock's fencing token beside the values of the user's context. That of a lock
// without a token hides the token of one around it.
func (k *Kept) Value(key any) any {
	if key == (fenceKey{}) {
		return k
	}
	return k.Context.Value(key)
}

// FenceFrom is the fencing token of the lock whose context ctx is, or is derived from.
func FenceFrom(ctx context.Context) (token uint64, ok bool) {
	k, ok := ctx.Value(fenceKey{}).(*Kept)
	if !ok || k.handle.fence == 0 {
		return 0, false
	}
	return k.handle.fence, true
}

// Err looks at the clock itself, and at the user's context, so that a function that asks
// after a pause is told the truth although no goroutine of ours has run since.
func (k *Kept) Err() error {
	if k.Context.Err() == nil && k.detach != nil {
		if k.user.Err() != nil {
			k.userEnded()
		} else {
			k.look()
		}
	}
	return k.Context.Err()
}

// look ends the context if validity is over, and says whether it is.
func (k *Kept) look() (over bool) {
	s, ok := k.handle.state()
	if !ok {
		return false
	}
	if over = k.handle.group.clock.Current() >= s.until; over {
		k.handle.group.keeper.expire(&k.entry, k.handle)
	}
	return over
}

// Stop ends that the lock is kept alive, and the context. To call it twice does nothing.
func (k *Kept) Stop() {
	if k.detach != nil {
		k.detach()
		k.handle.group.keeper.stop(&k.entry, k.handle, engine.ErrStopped)
	}
	k.cancel(engine.ErrStopped) // unless it has ended before
}

// Lost is why the lock was lost while it was kept alive, or could not be kept alive, or
// nil. The keeper may not have noticed yet.
func (k *Kept) Lost() error {
	alive := k.Context.Err() == nil
	over := alive && k.look()
	if cause := k.lost.Load(); cause != nil {
		return *cause
	}
	if over {
		return engine.ErrExpired
	}
	return nil
}

// userEnded passes on the end of the user's context.
func (k *Kept) userEnded() {
	k.endWith(k.user)
	k.handle.group.keeper.stop(&k.entry, k.handle, engine.ErrStopped)
}

// endWith ends the context as another that has ended. That is user code, and is called
// on a goroutine of package context, where a panic would end the process.
func (k *Kept) endWith(user context.Context) {
	err := context.Canceled
	func() {
		defer func() { _ = recover() }()
		if e := user.Err(); e != nil {
			err = e
		}
	}()
	k.source.end(err)
}

// ended is told by the keeper, of which no user code may run.
func (k *Kept) ended(cause error) {
	if cause != engine.ErrStopped {
		k.lost.Store(&cause)
	}
	k.cancel(cause)
	if k.detach != nil {
		k.detach()
	}
}

// Do calls f with a context that ends with the lock. It releases the lock in every case. With
// once it makes one attempt to acquire it.
func (g *Group) Do(ctx context.Context, key string, ttl time.Duration, once bool, f func(context.Context) error) (err error) {
	name, acquire := "Do", g.Acquire
	if once {
		name, acquire = "TryDo", g.TryAcquire
	}
	if ttl < renewal.MinTTL {
		return engine.WrongArgument("ttl is %v; %s needs %v at least, to keep the lock alive", ttl, name, renewal.MinTTL)
	}
	if f == nil {
		return engine.WrongArgument("%s was given no function", name)
	}
	ctx = orBackground(ctx)
	h, err := acquire(ctx, key, ttl)
	if err != nil {
		return err
	}
	asked := false
	defer func() {
		if !asked { // the client is busy, or ctx, which is user code, has panicked
			h.ReleaseAsync()
		}
	}()
	kept := h.KeepAlive(ctx)
	returned := false
	defer func() {
		lost := kept.Lost()
		kept.Stop()
		released := h.Release(ctx)
		asked = released != engine.ErrBusy
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
