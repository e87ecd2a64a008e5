package workload

import (
	"context"
	"errors"
	"time"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/bench/network/history"
)

// look looks at a lock, as a careful user does again and again. The clock is read before: what is left counts from a later
// instant, so the claim is not too long.
func look(c *history.Call, l held) bool {
	at := history.Now()
	left := l.Remaining()
	if left <= 0 {
		return false
	}
	if c.From == 0 {
		c.From = at
	}
	c.Until = max(c.Until, at.Add(left))
	return true
}

// begin is the record of a call that has d.
func (w *worker) begin(api string, ttl, d time.Duration, keys ...string) (*history.Call, context.Context, context.CancelFunc) {
	now := history.Now()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	c := &history.Call{Client: w.Client, Step: w.step, Worker: w.name, API: api, Library: w.library, Keys: keys, TTL: ttl, Asked: now, Deadline: now.Add(d)}
	return c, ctx, cancel
}

// granted notes the answer to a call. The record of a refused one is complete.
func (w *worker) granted(c *history.Call, err error, l held) bool {
	c.Answered, c.Result, c.Text = history.Now(), result(err), text(err)
	if err != nil {
		if gaveUp := (*redlock.AcquireError)(nil); errors.As(err, &gaveUp) {
			c.Attempts = gaveUp.Attempts
		}
		w.complete(c)
		return false
	}
	c.Got = c.Keys
	if l == nil {
		return true
	}
	c.Fence = l.Fence()
	if own, ok := l.(redlock.Lock); ok {
		c.Got, c.Digest = own.Keys(), digest(own)
	}
	return true
}

// hold works under a lock for d, and releases it.
func (w *worker) hold(c *history.Call, l held, d time.Duration) {
	end := history.Now().Add(d)
	for look(c, l) {
		w.write(c, l, false)
		left := end.Sub(history.Now())
		if left <= 0 {
			w.release(c, l)
			return
		}
		time.Sleep(min(left, 10*time.Millisecond))
	}
	c.Over = "validity"
	w.write(c, l, true) // the register judges it by its token
	w.release(c, l)
}

// write writes to the register once, and again if it is too late. A key that one worker alone wants needs none.
func (w *worker) write(c *history.Call, l held, late bool) {
	if c.Fence == 0 || len(c.Got) != 1 || len(c.Writes) > 0 && !late || history.IsPrivate(c.Got[0]) {
		return
	}
	valid := l.Remaining() > 0
	at := history.Now()
	accepted := w.register.Write(c.Got[0], c.Fence)
	c.Writes = append(c.Writes, history.Write{At: at, Accepted: accepted, Valid: valid && l.Remaining() > 0})
}

// release releases a lock and completes the record. A fifth of the releases is not waited for.
func (w *worker) release(c *history.Call, l held) {
	c.Left = l.Remaining()
	c.Released = history.Now()
	if own, ok := l.(redlock.Lock); ok && w.rng.IntN(5) == 0 {
		own.ReleaseAsync()
		c.Async, c.Release = true, history.OK
	} else {
		ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
		c.Release = result(l.Release(ctx))
		cancel()
	}
	c.Gone = history.Now()
	w.complete(c)
}

// releaseTime is how long a release may take.
const releaseTime = time.Second

func (w *worker) complete(c *history.Call) {
	c.Until = min(c.Until, c.Released)
	if b, ok := w.locks.(*byHand); ok {
		c.Unanswered = b.unanswered.Swap(false)
	}
	w.file.Add(history.Record{Call: c})
}

// do works for d under the context of a Do. It claims each instant at which the context had no error.
func (w *worker) do(c *history.Call, d time.Duration, call func(func(context.Context) error) error) {
	called := false
	err := call(func(ctx context.Context) error {
		called = true
		w.granted(c, nil, nil)
		c.Fence, _ = redlock.FenceFrom(ctx)
		for end := c.Answered.Add(d); ; {
			now := history.Now()
			if ctx.Err() != nil {
				c.Over = result(context.Cause(ctx))
				break
			}
			if c.From == 0 {
				c.From = now
			}
			c.Until = now
			if now >= end {
				break
			}
			select {
			case <-ctx.Done():
			case <-time.After(min(end.Sub(now), 10*time.Millisecond)):
			}
		}
		c.Released = history.Now()
		return nil
	})
	if !called {
		w.granted(c, err, nil)
		return
	}
	c.Gone, c.Release, c.Async = history.Now(), result(err), true
	w.complete(c)
}
