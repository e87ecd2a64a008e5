package holding

import (
	"context"
	"sync/atomic"

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
	keeper *Keeper
	hold   Hold
	entry  entry // no other lock's, ever: a late stop does no harm
	detach func() bool
	lost   atomic.Pointer[error] // the keeper's report
}

// Keep keeps the lock of h alive until its context ends: by Stop, with ctx, or because the lock is lost. If the lock
// cannot be kept alive, the context has ended already.
//
// The user's context is asked before the keeper knows of the lock: it is user code and may panic, and then nothing
// was begun. It may end at any time from then on, also before the keeper has the entry; so it is looked at again
// afterwards.
func (k *Keeper) Keep(ctx context.Context, h Hold) *Kept {
	c := newKept(ctx)
	c.keeper, c.hold = k, h
	if c.user.Err() != nil {
		c.endWithUser()
		return c
	}
	c.detach = context.AfterFunc(&parent{Context: c.user, done: c.user.Done()}, c.userEnded)
	if err := k.add(c); err != nil {
		c.ended(err)
		return c
	}
	if c.Context.Err() != nil {
		k.stop(&c.entry, h)
	}
	return c
}

// NotKept is the context of a lock that cannot be kept alive because of cause.
func NotKept(ctx context.Context, cause error) *Kept {
	c := newKept(ctx)
	c.ended(cause)
	return c
}

func newKept(ctx context.Context) *Kept {
	c := &Kept{user: ctx}
	c.source.Context = ctx
	c.Context, c.cancel = context.WithCancelCause(&c.source)
	c.entry.place = renewal.Nowhere
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

// Around is the locks of ctx, the innermost, as of FenceFrom, first: all with a home accepted by at.
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

// check ends the context if validity is over, and reports whether it is.
func (c *Kept) check() (over bool) {
	s, ok := c.hold.State()
	if !ok {
		return false
	}
	over = c.keeper.cfg.Clock.Now() >= s.Until
	if over {
		c.keeper.expire(&c.entry, c.hold)
	}
	return over
}

// Stop ends the renewals of the lock, and the context. A second call does nothing.
func (c *Kept) Stop() {
	if c.detach != nil {
		c.detach()
		c.keeper.stop(&c.entry, c.hold)
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
	c.keeper.stop(&c.entry, c.hold)
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
