package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestAttemptHearsTheResult: the caller gets the error that the hook got, also where the hook uses up the validity.
func TestAttemptHearsTheResult(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const short = 50 * time.Millisecond
		var heard error
		r := cluster.New(t, 3, func(c *redlock.Config) {
			c.Hooks.Attempt = func(a redlock.Attempt) {
				if a.Kind == redlock.OpAcquire {
					time.Sleep(short)
					heard = a.Err
				}
			}
		})
		for range 3 {
			require.Equal(t, errorOf(r.TryAcquire(t.Context(), "k", short)), heard)
			r.Servers.Flush()
		}
	})
}

// TestLockLostIsHeardOnce, by the first call that finds it out, and not for a released lock.
func TestLockLostIsHeardOnce(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var y cluster.HookRecorder
		r := cluster.New(t, 1, cluster.Listening(&y))
		heard := func(want ...error) {
			t.Helper()
			var texts []string
			for _, err := range want {
				texts = append(texts, fmt.Sprint("k: ", err))
			}
			require.Equal(t, texts, cluster.Take(&y, &y.Lost))
		}
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		r.Servers[0].Del("k")
		require.Equal(t, redlock.ErrNotHeld, l.Extend(t.Context(), ttl))
		heard(redlock.ErrNotHeld)
		require.Equal(t, redlock.ErrExpired, l.Extend(t.Context(), ttl))
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		heard()

		l = cluster.MustAcquire(t, r.Client, "k", ttl)
		r.Servers[0].Del("k")
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		heard(redlock.ErrNotHeld)
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()), "a dead handle")
		heard()

		l = testkit.Must(r.Acquire(t.Context(), "k", 100*time.Millisecond))(t)
		testkit.Await(t, "expired", func() bool { return l.Remaining() == 0 })
		before := r.Stats().Extend
		require.ErrorIs(t, l.Extend(t.Context(), 0), redlock.ErrArgument, "a wrong argument comes first")
		require.Equal(t, before, r.Stats().Extend)
		heard()
		require.Equal(t, redlock.ErrExpired, l.Extend(t.Context(), ttl))
		heard(redlock.ErrExpired)
		_ = l.Release(t.Context())
		heard()

		l = cluster.MustAcquire(t, r.Client, "k", ttl)
		require.NoError(t, l.Extend(t.Context(), ttl))
		require.NoError(t, l.Release(t.Context()))
		heard()

		// A background release deleted the key: the lock was not lost.
		l = cluster.MustAcquire(t, r.Client, "k", ttl)
		r.Servers[0].Mute()
		require.Equal(t, context.Canceled, l.Release(ended(t)))
		r.AwaitEmpty(t)
		require.NoError(t, r.Servers[0].Heal())
		require.Equal(t, redlock.ErrNotHeld, l.Extend(t.Context(), ttl))
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		heard()
	})
}

// TestARefusedExtendGaveNothingBack: a call that finds the lock gone later reports it.
func TestARefusedExtendGaveNothingBack(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var y cluster.HookRecorder
		r := cluster.New(t, 1, cluster.Listening(&y), func(c *redlock.Config) { c.MaxWaiting = 1 })
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		unclogged := r.Clog(t) // one waits, as many as may
		require.Equal(t, redlock.ErrBusy, l.Extend(t.Context(), ttl))
		require.EqualValues(t, 1, r.Stats().Extend.Refused)
		require.NoError(t, r.Servers[0].Heal())
		unclogged()
		r.Servers[0].Del("k")
		require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
		require.Equal(t, []string{fmt.Sprint("k: ", redlock.ErrNotHeld)}, cluster.Take(&y, &y.Lost))

		l = cluster.MustAcquire(t, r.Client, "k", ttl)
		require.NoError(t, r.Close())
		require.Equal(t, redlock.ErrClosed, l.Release(t.Context()))
		require.NotZero(t, l.Remaining(), "no node was asked")
	})
}
