package holding

import (
	"context"
	"sync/atomic"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/rules/renewal"
)

// Kept is the context of a lock kept alive.
//
// It is derived from a source, and not from the user's context. To cancel a context of the standard library takes it
// off its parent: this may be user code, and the keeper must not call it. userEnded passes the end of the user's
// context on to the source.
type Kept struct {
	context.Context
	cancel context.CancelCauseFunc
	source source
	user   context.Context
	keeper *Keeper // nil: it was never kept alive
	hold   Hold
	detach func() bool
	lost   atomic.Pointer[error] // the keeper's report

	// The keeper's mutex protects the rest.
	place  int // in the schedule, while the lock is kept alive
	lock   renewal.Lock
	failed error // why the last renewal failed

	// The last renewal. None begins before its result is known.
	calls *engine.Call
	began clock.Instant
	left  atomic.Int32 // calls without a result
	next  *entry       // in Keeper.results
}

// Keep keeps the lock of h alive until its context ends: by Stop, with ctx, or because the lock is lost. If the lock
// cannot be kept alive, the context has ended already. Without a keeper h holds nothing.
//
// The user's context is asked before the keeper knows of the lock: it is user code and may panic, and then nothing
// was begun. It may end at any time from then on, also before the keeper has the lock; so it is looked at again
// afterwards.
func (k *Keeper) Keep(ctx context.Context, h Hold) *Kept {
	c := &Kept{user: ctx, keeper: k, hold: h}
	c.source.Context = ctx
	c.Context, c.cancel = context.WithCancelCause(&c.source)
	switch {
	case k == nil:
		c.ended(engine.ErrNotHeld)
		return c
	case c.user.Err() != nil:
		c.endWithUser()
		return c
	}
	c.detach = context.AfterFunc(&parent{cut: cut{Context: c.user}, done: c.user.Done()}, c.userEnded)
	if err := k.add(c); err != nil {
		c.ended(err)
		return c
	}
	if c.Context.Err() != nil {
		k.stop(c)
	}
	return c
}

// fenceKey is the key of the fencing token in the context of a lock kept alive.
type fenceKey struct{}

// Value has the lock's fencing token beside the values of the user's context. A lock without a token hides the token
// of a lock around it.
func (c *Kept) Value(key any) any {
	if key == (fenceKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// FenceFrom is the fencing token of the lock of ctx: ctx is its context, or derived from it.
func FenceFrom(ctx context.Context) (token fencing.Token, ok bool) {
	c, ok := ctx.Value(fenceKey{}).(*Kept)
	if !ok || c.hold.Fence == 0 {
		return 0, false
	}
	return c.hold.Fence, true
}

// HoldFrom is the hold of the lock of ctx, and its home: ctx is its context, or derived from it.
func HoldFrom(ctx context.Context) (home *engine.Engine, h Hold, ok bool) {
	c, ok := ctx.Value(fenceKey{}).(*Kept)
	if !ok || c.keeper == nil {
		return nil, Hold{}, false
	}
	return c.keeper.cfg.Home, c.hold, true
}

// Around returns the locks of ctx, the innermost, as of FenceFrom, first: all with a home accepted by at.
func Around(ctx context.Context, at func(home *engine.Engine) bool) (held []State) {
	for {
		c, ok := ctx.Value(fenceKey{}).(*Kept)
		if !ok {
			return held
		}
		if c.keeper != nil && at(c.keeper.cfg.Home) {
			if s, ok := c.hold.State(); ok {
				held = append(held, s)
			}
		}
		ctx = c.user
	}
}

// Err looks at the clock itself, and at the user's context: a function that asks after a pause learns the truth,
// although no goroutine of ours has run since.
func (c *Kept) Err() error {
	if c.Context.Err() == nil && c.detach != nil {
		if c.user.Err() != nil {
			c.userEnded()
		} else {
			c.check()
		}
	}
	return c.Context.Err()
}

// causeOf is why validity has come to its end. Validity is 0 after a release, until its caller stops the renewals, and
// after the holder's own extension has found the lock lost. The keeper's mutex is held.
func (c *Kept) causeOf(s *State) error {
	switch {
	case s.Released:
		return engine.ErrStopped
	case s.Until == 0:
		return engine.ErrNotHeld
	case c.failed != nil:
		return c.failed
	}
	return engine.ErrExpired
}

// check ends the context if validity is over, and reports whether it is.
func (c *Kept) check() (over bool) {
	s, ok := c.hold.State()
	if !ok {
		return false
	}
	over = c.keeper.cfg.Clock.Now() >= s.Until
	if over {
		c.keeper.expire(c)
	}
	return over
}

// Stop ends the renewals of the lock, and the context. A second call does nothing.
func (c *Kept) Stop() {
	if c.detach != nil {
		c.detach()
		c.keeper.stop(c)
	}
	c.cancel(engine.ErrStopped) // unless it has ended before
}

// Lost is why the lock was lost while kept alive, or could not be kept alive, or nil. The keeper may not have noticed
// yet.
func (c *Kept) Lost() error {
	alive := c.Context.Err() == nil
	over := alive && c.check()
	if cause := c.lost.Load(); cause != nil {
		return *cause
	}
	if over {
		return engine.ErrExpired
	}
	return nil
}

// userEnded passes on the end of the user's context.
func (c *Kept) userEnded() {
	c.endWithUser()
	c.keeper.stop(c)
}

// endWithUser ends the context with the error of the user's, which has ended. To ask for it is user code, on a
// goroutine of package context, where a panic would end the process.
func (c *Kept) endWithUser() {
	err := context.Canceled
	func() {
		defer func() { _ = recover() }()
		if e := c.user.Err(); e != nil {
			err = e
		}
	}()
	c.source.end(err)
}

// ended is called by the keeper, so it runs no user code.
func (c *Kept) ended(cause error) {
	if cause != engine.ErrStopped {
		c.lost.Store(&cause)
	}
	c.cancel(cause)
	if c.detach != nil {
		c.detach()
	}
}
