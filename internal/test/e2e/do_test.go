package e2e

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestDo: the function runs with the lock. The lock is released in every case, and the function's
// error comes joined with the cause of a loss.
func TestDo(t *testing.T) { testDo(t, (*redlock.Client).Do) }

// TestTryDo: the same with one attempt. The function is not called where the lock is taken, or
// where others wait for it.
func TestTryDo(t *testing.T) {
	testDo(t, (*redlock.Client).TryDo)
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		f := func(context.Context) error {
			t.Error("it was called")
			return nil
		}
		require.Equal(t, redlock.ErrTaken, r.TryDo(t.Context(), "k", ttl, f))
		require.EqualValues(t, 1, r.Stats().Acquire.Denied, "one attempt")
		next := inLine(t, r.Client, t.Context(), "k", 1)
		require.Equal(t, redlock.ErrTaken, r.TryDo(t.Context(), "k", ttl, f))
		require.NoError(t, l.Release(t.Context()))
		got := locked(t, next)
		require.NoError(t, got.Release(t.Context()))
	})
}

// TestDoAll: the same for several keys; a key named twice is one.
func TestDoAll(t *testing.T) {
	testDo(t, func(c *redlock.Client, ctx context.Context, key string, ttl time.Duration, f func(context.Context) error) error {
		return c.DoAll(ctx, ttl, []string{key, "other", key}, f)
	})
}

// TestDoWithinItsOwnLock: it would wait for its own caller, so it fails at once.
func TestDoWithinItsOwnLock(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		other := cluster.Connect(t, fakeredis.Addrs(r.Servers))
		require.NoError(t, r.DoAll(t.Context(), ttl, []string{"a", "b"}, func(ctx context.Context) error {
			return r.Do(ctx, "c", ttl, func(ctx context.Context) error {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				for _, key := range []string{"a", "b", "c"} {
					err := r.Do(ctx, key, ttl, nothing)
					require.ErrorIs(t, err, redlock.ErrArgument)
					require.ErrorContains(t, err, "Do of \""+key+"\" was called with the context of a lock on it")
					require.ErrorIs(t, r.TryDo(ctx, key, ttl, nothing), redlock.ErrArgument)
					require.ErrorIs(t, r.DoAll(ctx, ttl, []string{"x", key}, nothing), redlock.ErrArgument)
					require.Equal(t, redlock.ErrTaken, other.TryDo(ctx, key, ttl, nothing), "another client waits for this one")
				}
				return r.Do(ctx, "d", ttl, nothing)
			})
		}))
		var late context.Context
		require.NoError(t, r.Do(t.Context(), "a", ttl, func(ctx context.Context) error { late = context.WithoutCancel(ctx); return nil }))
		require.NoError(t, r.Do(late, "a", ttl, nothing), "it is held no more")
	})
}

// TestHeldCounts the locks with validity left, unreleased ones too.
func TestHeldCounts(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		require.Zero(t, r.Stats().Held)
		long, short := cluster.MustAcquire(t, r.Client, "long", time.Hour), cluster.MustAcquire(t, r.Client, "short", ttl)
		for i := range 100 {
			cluster.MustAcquire(t, r.Client, fmt.Sprint("left ", i), 2*ttl)
		}
		require.Equal(t, 102, r.Stats().Held)
		require.NoError(t, short.Extend(t.Context(), time.Hour))
		require.Equal(t, 102, r.Stats().Held)
		time.Sleep(2*ttl + 300*time.Millisecond)
		require.Equal(t, 2, r.Stats().Held)
		for i := range 3 { // instants that share a cell
			cluster.MustAcquire(t, r.Client, fmt.Sprint("far ", i), time.Hour+time.Duration(i)*1024<<27)
		}
		require.Equal(t, 5, r.Stats().Held)
		require.NoError(t, long.Release(t.Context()))
		short.ReleaseAsync()
		require.Equal(t, 3, r.Stats().Held)
		time.Sleep(2 * time.Hour)
		require.Zero(t, r.Stats().Held)
	})
}

func testDo(t *testing.T, do func(*redlock.Client, context.Context, string, time.Duration, func(context.Context) error) error) {
	own := errors.New("the function's own")
	type doing struct {
		*cluster.Cluster
		ctx    context.Context
		cancel context.CancelCauseFunc // of the caller's
	}
	delete := func(d doing) {
		d.Servers.Del("k")
	}
	for name, c := range map[string]struct {
		f       func(t *testing.T, d doing) error
		errs    []error // wrapped by the result; none: nil
		not     []error // not wrapped by it
		lost    bool
		panics  bool
		goexits bool
	}{
		"well": {f: func(t *testing.T, d doing) error {
			awaitPassed(t, 2*brief)
			require.Equal(t, 3, d.Holders("k"))
			return d.ctx.Err()
		}},
		"error":  {f: func(*testing.T, doing) error { return own }, errs: []error{own}, not: []error{redlock.ErrNotHeld, redlock.ErrStopped}},
		"panic":  {f: func(*testing.T, doing) error { panic(own) }, panics: true},
		"goexit": {f: func(*testing.T, doing) error { runtime.Goexit(); return nil }, goexits: true},
		"caller gives up": {f: func(t *testing.T, d doing) error {
			d.cancel(manyErrors{own})
			awaitDone(t, d.ctx)
			return d.ctx.Err()
		}, errs: []error{context.Canceled}, not: []error{redlock.ErrStopped, redlock.ErrNotHeld, redlock.ErrExpired}},
		"lost": {f: func(t *testing.T, d doing) error {
			delete(d)
			awaitDone(t, d.ctx)
			return own
		}, errs: []error{own, redlock.ErrNotHeld}, lost: true},
		"lost, and not noticed": {f: func(t *testing.T, d doing) error {
			delete(d)
			return nil
		}}, // the release is not waited for
		"out of reach": {f: func(t *testing.T, d doing) error {
			d.Servers.Mute()
			awaitDone(t, d.ctx)
			require.NoError(t, d.Servers.Heal())
			return d.ctx.Err()
		}, errs: []error{context.Canceled, redlock.ErrNoQuorum}, not: []error{redlock.ErrNotHeld}, lost: true},
		"closed": {f: func(t *testing.T, d doing) error { return d.Close() }, errs: []error{redlock.ErrClosed}, lost: true},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 3)
			user, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			var err error
			var panicked any
			returned := false
			testkit.Within(t, testkit.Patience, "Do", func() {
				done := make(chan struct{})
				go func() {
					defer close(done)
					defer func() { panicked = recover() }()
					err = do(r.Client, user, "k", brief, func(ctx context.Context) error {
						require.NoError(t, ctx.Err())
						return c.f(t, doing{r, ctx, cancel})
					})
					returned = true
				}()
				<-done
			})
			if c.panics {
				require.Equal(t, own, panicked)
			} else {
				require.Nil(t, panicked)
			}
			require.Equal(t, !c.panics && !c.goexits, returned)
			if returned && len(c.errs) == 0 {
				require.NoError(t, err)
			}
			for _, want := range c.errs {
				require.ErrorIs(t, err, want)
			}
			for _, not := range c.not {
				require.NotErrorIs(t, err, not)
			}
			var lost *redlock.LostError
			require.Equal(t, c.lost, errors.As(err, &lost))
			if c.lost {
				require.Equal(t, "k", lost.Key)
			}
			require.Zero(t, cluster.Stats(t, r.Client).KeptAlive)
			if name != "closed" {
				testkit.AwaitFor(t, brief/2, "the release", func() bool { return r.Holders("k") == 0 })
				require.Zero(t, cluster.Settle(t, r.Client).Held)
			}
		})
	}
}

// TestDoDoesNotWaitForItsRelease: it is on its way when Do returns, later commands on the key come
// after it, and Close sends the rest.
func TestDoDoesNotWaitForItsRelease(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const trip = 20 * time.Millisecond
		r := cluster.New(t, 3)
		var left time.Time
		require.NoError(t, r.Do(t.Context(), "k", ttl, func(context.Context) error {
			time.Sleep(6 * time.Millisecond) // between two ticks of the watchdog
			return nil
		}))
		time.Sleep(200 * time.Microsecond)
		require.Zero(t, r.Holders("k"))
		for range 2 { // after the other in the queue, since the window is small
			require.NoError(t, r.TryDo(t.Context(), "k", ttl, func(context.Context) error {
				r.Servers.Delay(trip)
				left = time.Now()
				return nil
			}))
			require.Equal(t, left, time.Now())
		}
		require.NoError(t, r.Close())
		r.AwaitEmpty(t)
		require.EqualValues(t, 3, r.Stats().Release.Won)
	})
}

// TestDoSendsItsRelease when it returns: as the last call, also while an operation is under way, since its process may end;
// and beside others, though each was a lone caller.
func TestDoSendsItsRelease(t *testing.T) {
	released := func(t *testing.T, r *cluster.Cluster, f func()) {
		require.NoError(t, r.Do(t.Context(), "k", ttl, func(context.Context) error {
			f()
			return nil
		}))
		time.Sleep(200 * time.Microsecond)
		require.Zero(t, r.Holders("k"))
	}
	cluster.Run(t, "the last call", func(t *testing.T) {
		r := cluster.New(t, 3)
		other := cluster.MustAcquire(t, r.Client, "other", ttl)
		released(t, r, func() {
			r.Servers.Delay(20 * time.Millisecond)
			go func() { _ = other.Extend(t.Context(), ttl) }()
			time.Sleep(time.Millisecond)
		})
	})
	cluster.Run(t, "beside others", func(t *testing.T) {
		r := cluster.New(t, 3)
		require.NoError(t, r.Do(t.Context(), "other", ttl, func(context.Context) error {
			released(t, r, func() { time.Sleep(6 * time.Millisecond) }) // between two ticks of the watchdog
			return nil
		}))
	})
}
