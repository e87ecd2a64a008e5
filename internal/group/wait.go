package group

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
)

// waiting is one Acquire: attempts, and the pauses between them.
type waiting struct {
	key      string
	began    time.Duration
	attempts int
	limit    int     // of the attempts; 0: none
	last     error   // of the last attempt that its context has not ended
	waited   bool    // it has paused, or stood in line
	ended    waitEnd // failed, unless another end was noted

	next time.Duration // with a limit: when an attempt is counted that nothing has woken
}

// wait begins an Acquire.
func (g *Group) wait(key string) waiting {
	return waiting{key: key, began: g.clock.Now(), limit: g.cfg.Retry.Attempts, ended: failed}
}

// goesOn notes how an attempt has ended, and returns whether another may do better, and
// is allowed.
func (w *waiting) goesOn(err error) bool {
	if isPassing(err) {
		if w.last = err; w.limit == 0 || w.attempts < w.limit {
			return true
		}
		w.ended = usedUp
	}
	return false
}

// waits notes that the last attempt was in vain, or that none was made. A caller with a limit
// then waits for as long as one that no node wakes pauses between two attempts, at most: so
// the limit bounds the time of an Acquire, too.
func (w *waiting) waits(g *Group) {
	w.waited, w.next = true, never
	if w.limit > 0 {
		w.next = g.clock.Now() + g.pause(max(1, w.attempts))
	}
}

// refused counts an attempt that is not made, since others stand before this caller, and
// reports whether another is allowed.
func (w *waiting) refused(g *Group) (goesOn bool) {
	w.attempts++
	goesOn = w.goesOn(engine.ErrTaken)
	w.waits(g)
	return goesOn
}

// isPassing reports whether an attempt that ended with err may be followed by a better one.
func isPassing(err error) bool {
	return err == engine.ErrTaken || err == engine.ErrExpired || err == engine.ErrBusy || errors.Is(err, engine.ErrNoQuorum)
}

// acquired counts and reports how an Acquire went. If the hook panics, the caller gets no
// handle, and the lock is released.
func (g *Group) acquired(ctx context.Context, w *waiting, h Handle, err error) (Handle, error) {
	if w.waited {
		switch {
		case err == nil && w.ended != handedOver:
			w.ended = granted
		case err == engine.ErrClosed:
			w.ended = shut
		}
		g.waits.add(w.ended, g.clock.Now()-w.began)
	}
	if f := g.cfg.OnAcquire; f != nil {
		reported := false
		defer func() {
			if !reported && err == nil {
				h.ReleaseAsync()
			}
		}()
		f(ctx, w.key, w.attempts, g.clock.Now()-w.began, w.ended == handedOver, err)
		reported = true
	}
	return h, err
}

// gaveUp is the error of an Acquire whose attempt has ended with err, for good.
func (g *Group) gaveUp(ctx context.Context, w *waiting, err error) error {
	if w.ended == usedUp { // also if ctx has ended since
		return g.acquireError(w, nil)
	}
	if err == nil || err == engine.ErrClosed || err != context.Canceled && ctx.Err() == nil { // Do returns that for a context without an error
		return err
	}
	return g.cutOff(ctx, w)
}

// cutOff is the error of an Acquire whose context has ended.
func (g *Group) cutOff(ctx context.Context, w *waiting) error {
	w.ended = gaveUp
	return g.acquireError(w, endOf(ctx))
}

func (g *Group) acquireError(w *waiting, ended error) error {
	return g.cfg.AcquireError(w.key, w.attempts, g.clock.Now()-w.began, w.last, ended)
}

// pause is a random pause after an attempt.
func (g *Group) pause(attempt int) time.Duration {
	return g.cfg.Retry.pause(attempt, rand.N[time.Duration])
}

// endOf is the error of a context that has ended, and its cause where that is another.
// It runs user code, and so only for the caller whose context it is.
func endOf(ctx context.Context) error {
	err := ctx.Err()
	if err == nil { // its Done channel is closed all the same
		err = context.Canceled
	}
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return err
	case errors.Is(cause, err): // often the same
		return cause
	default:
		return fmt.Errorf("%w: %w", err, cause)
	}
}
