package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestExtendTooLate: once validity is over no node is asked, though the keys may still be there. An
// extension confirmed after the end of its own TTL changes nothing. One confirmed after the end of the
// validity that it extends is none, though its own TTL is long: another client may have held the lock.
func TestExtendTooLate(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.Of(t, cluster.Start(t, 3, fakeredis.Options{Now: testkit.StoppedClock()}))
		over := cluster.MustAcquire(t, r.Client, "over", 300*time.Millisecond)
		testkit.Await(t, "the end", func() bool { return over.Remaining() == 0 })
		require.Equal(t, redlock.ErrExpired, over.Extend(t.Context(), ttl))
		require.Zero(t, over.Remaining())
		cluster.Settle(t, r.Client)
		r.Servers.Each(func(s *fakeredis.Server) { require.Zero(t, s.Count("EVALSHA")) })
		require.NoError(t, over.Release(t.Context()))

		long := cluster.MustAcquire(t, r.Client, "long", ttl)
		late, later := cluster.MustAcquire(t, r.Client, "late", 100*time.Millisecond), cluster.MustAcquire(t, r.Client, "later", time.Second)
		r.Servers.Delay(150 * time.Millisecond)
		require.Equal(t, redlock.ErrExpired, late.Extend(t.Context(), ttl))
		require.NoError(t, long.Extend(t.Context(), 30*time.Millisecond))
		require.Greater(t, long.Remaining(), ttl/2)
		r.Servers.Delay(2 * time.Second)
		require.Equal(t, redlock.ErrExpired, later.Extend(t.Context(), time.Second))
		for _, lost := range []redlock.Lock{late, later} {
			require.Zero(t, lost.Remaining())
			require.NoError(t, lost.Release(t.Context()))
		}
	})
}

// TestKeptByHand: the holder of a lock kept alive may extend it, and keeps it alive once at a time;
// the stop of one KeepAlive does not end another.
func TestKeptByHand(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		l := cluster.MustAcquire(t, r.Client, "k", brief)
		first, stopFirst := l.KeepAlive(t.Context())
		second, stopSecond := l.KeepAlive(t.Context())
		require.Error(t, second.Err())
		require.ErrorContains(t, context.Cause(second), "kept alive already")
		require.ErrorContains(t, cluster.Keep(l, nil), "kept alive already")
		stopSecond()
		require.NoError(t, first.Err())
		require.NoError(t, l.Extend(t.Context(), 2*brief))
		require.Greater(t, l.Remaining(), brief)
		require.NoError(t, l.Extend(t.Context(), brief/3))
		awaitPassed(t, brief)
		require.NoError(t, context.Cause(first))
		require.Less(t, l.Remaining(), brief, "by the TTL that it was given last")
		stopFirst()
		for range 10 { // entries are used again
			third, stopThird := l.KeepAlive(t.Context())
			stopFirst()
			stopSecond()
			require.NoError(t, third.Err())
			require.Equal(t, 1, cluster.Stats(t, r.Client).KeptAlive)
			stopThird()
		}
		require.NoError(t, l.Release(t.Context()))
	})
}

// TestOvertakenExtend: an extend that waits for longer than the validity it is about, while renewals
// overtake it, brings what it was asked for.
func TestOvertakenExtend(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, func(c *redlock.Config) { knobs.Of(c).MaxInFlight = 64 })
		l := cluster.MustAcquire(t, r.Client, "k", time.Second)
		require.NoError(t, cluster.Keep(l, nil))
		r.Servers.Delay(200 * time.Millisecond)
		for range 640 { // a dozen batches
			require.NoError(t, r.Submit(releaseOp("other", func(*redlock.Op) {})))
		}
		require.NoError(t, l.Extend(t.Context(), time.Hour))
		require.Greater(t, l.Remaining(), 50*time.Minute)
	})
}
