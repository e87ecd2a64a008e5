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

// TestExtendIsTrue: a node with no key, or another's, is no vote. A majority of such nodes ends the
// lock, and then no key is made or touched.
func TestExtendIsTrue(t *testing.T) {
	for name, lose := range map[string]func(*fakeredis.Server){
		"gone":         func(s *fakeredis.Server) { s.Del("k") },
		"another's":    func(s *fakeredis.Server) { s.Set("k", "another's", 10*ttl) },
		"foreign type": func(s *fakeredis.Server) { s.Del("k"); s.Plant("k", "list") },
	} {
		cluster.Virtually(t, func(t *testing.T) {
			for lost := range 6 {
				r := cluster.New(t, 5)
				l := cluster.MustAcquire(t, r.Client, "k", ttl)
				testkit.Await(t, "on all nodes", func() bool { return r.Holders("k") == 5 })
				r.Servers[:lost].Each(lose)
				before := make([]time.Duration, lost)
				for i, s := range r.Servers[:lost] {
					before[i] = s.TTL("k")
				}
				err := l.Extend(t.Context(), 2*ttl)
				r.AwaitCalls(t, 1, "EVALSHA", "k")
				if lost <= 2 {
					require.NoError(t, err, name)
					require.Greater(t, l.Remaining(), ttl)
				} else {
					require.Equal(t, redlock.ErrNotHeld, err, name)
					require.Zero(t, l.Remaining(), "it is lost")
					require.Equal(t, redlock.ErrExpired, l.Extend(t.Context(), ttl), "and stays so")
				}
				for i, s := range r.Servers[:lost] {
					require.True(t, s.TTL("k") <= before[i] || name == "gone" && lost <= 2)
				}
				cluster.Settle(t, r.Client)
				switch {
				case name == "gone" && lost <= 2:
					r.AwaitHolders(t, 5, "k") // it is repaired
				case name == "gone":
					require.Equal(t, 5-lost, r.Holders("k"), "no key made")
				}
				_ = l.Release(t.Context())
			}
		})
	}
}

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

// TestExtendNeverShortens the rest, at the client or at a node.
func TestExtendNeverShortens(t *testing.T) {
	for _, flavor := range []fakeredis.Flavor{fakeredis.Redis7, fakeredis.Valkey9, fakeredis.Redis84} {
		cluster.Run(t, flavor.String(), func(t *testing.T) {
			r := cluster.Of(t, cluster.Start(t, 3, fakeredis.Options{Flavor: flavor}))
			l := cluster.MustAcquire(t, r.Client, "k", ttl)
			for _, d := range []time.Duration{ttl / 2, 2 * ttl, ttl} {
				left := l.Remaining()
				require.NoError(t, l.Extend(t.Context(), d))
				cluster.Settle(t, r.Client)
				require.Greater(t, l.Remaining(), max(left, d)-testkit.Patience)
				r.Servers.Each(func(s *fakeredis.Server) { require.Greater(t, s.TTL("k"), max(left, d)-testkit.Patience) })
			}
		})
	}
}

// TestUnconfirmedExtension neither lengthens nor shortens the rest.
func TestUnconfirmedExtension(t *testing.T) {
	refuse := func(r *cluster.Cluster, t *testing.T, d time.Duration, l redlock.Lock) {
		r.Servers[:3].Each(func(s *fakeredis.Server) { s.ErrorReply("EVALSHA", "BUSY Redis is busy running a script", 1) })
		require.ErrorIs(t, l.Extend(t.Context(), d), redlock.ErrNoQuorum)
	}
	for name, fail := range map[string]func(*cluster.Cluster, *testing.T, time.Duration, redlock.Lock){
		"no quorum": refuse,
		"cancelled": func(r *cluster.Cluster, t *testing.T, d time.Duration, l redlock.Lock) {
			r.Servers.Hang()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			require.Equal(t, context.DeadlineExceeded, l.Extend(ctx, d))
			r.Heal(t)
		},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 5)
			l := cluster.MustAcquire(t, r.Client, "k", ttl)
			left := l.Remaining()
			fail(r, t, 2*ttl, l)
			require.Less(t, l.Remaining(), left)
			require.Greater(t, l.Remaining(), left-testkit.Patience, "still held")

			fail(r, t, ttl/5, l)
			require.Greater(t, l.Remaining(), left-testkit.Patience, "still held")

			left = l.Remaining()
			require.NoError(t, l.Extend(t.Context(), ttl), "and can be extended again")
			require.Greater(t, l.Remaining(), left)
			require.NoError(t, l.Release(t.Context()))
		})
	}
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
