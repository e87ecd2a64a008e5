package e2e

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// rarely keeps waiters from finding out by themselves, within a test, that a lock is free.
func rarely(c *redlock.Config) {
	c.Retry = redlock.Retry{Min: testkit.Patience, Max: testkit.Patience}
}

// awaitTracked waits until a master tracks so many keys: the key of a lock, and tickets.
func awaitTracked(t *testing.T, s *fakeredis.Server, n int) {
	t.Helper()
	testkit.Await(t, "tracked keys", func() bool { return s.TrackedKeys() == n })
}

// acquiring makes a call of Acquire in the background.
func acquiring(t *testing.T, c *redlock.Client, key string) <-chan testkit.Result[redlock.Lock] {
	return testkit.InBackground(func() (redlock.Lock, error) { return c.Acquire(t.Context(), key, ttl) })
}

// TestBusyRelease: a release with an acquire along goes alone if there is no room for it.
func TestBusyRelease(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var heard cluster.HookRecorder
		r := cluster.New(t, 1, cluster.Listening(&heard), func(c *redlock.Config) { c.NoHandOver = true; c.MaxWaiting = 1 })
		held := cluster.MustAcquire(t, cluster.Connect(t, fakeredis.Addrs(r.Servers)), "k", ttl)
		next := inLine(t, r.Client, t.Context(), "k", 1)
		third := inLine(t, r.Client, t.Context(), "k", 2)
		require.NoError(t, held.Release(t.Context()))
		l := locked(t, next)
		time.Sleep(50 * time.Millisecond) // it is held
		require.NoError(t, l.Release(t.Context()))
		require.NoError(t, testkit.Get(t, third).Err)
		requireHeard(t, r, &heard) // neither of the two counts twice
	})
}

// TestRandInRelease: a panic of Rand, the source of the next holder's token, leaves the lock as it
// was.
func TestRandInRelease(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var broken atomic.Bool
		r := cluster.New(t, 1, rarely, func(c *redlock.Config) {
			c.NoHandOver = true
			knobs.Of(c).Rand = userReader(func(p []byte) (int, error) {
				if broken.CompareAndSwap(true, false) {
					panic("no randomness")
				}
				return rand.Read(p)
			})
		})
		held := cluster.MustAcquire(t, r.Client, "k", ttl)
		next := inLine(t, r.Client, t.Context(), "k", 1)
		time.Sleep(50 * time.Millisecond) // until it has nothing left to do but to wait
		broken.Store(true)
		require.ErrorContains(t, testkit.Try(t, "release", func() error { return held.Release(t.Context()) }), "no randomness")
		require.NoError(t, held.Release(t.Context()))
		require.NoError(t, testkit.Get(t, next).Err)
	})
}

// TestEndedAlong: a waiter whose context ends while its acquire, sent along with a release, is on its way has the lock if
// that wins first, and a hook hears of it.
func TestEndedAlong(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		var heard cluster.HookRecorder
		r := cluster.New(t, 1, cluster.Listening(&heard), rarely, func(c *redlock.Config) { c.NoHandOver = true })
		held := cluster.MustAcquire(t, r.Client, "k", ttl)
		ctx, cancel := context.WithCancel(t.Context())
		next := testkit.Start(func() error { _, err := r.Acquire(ctx, "k", ttl); return err })
		awaitTracked(t, r.Servers[0], 2)
		time.Sleep(50 * time.Millisecond) // until it sleeps
		released := testkit.Start(func() error { return held.Release(t.Context()) })
		time.Sleep(50 * time.Microsecond)
		cancel()
		require.NoError(t, testkit.Get(t, released))
		require.NoError(t, testkit.Get(t, next))
		requireHeard(t, r, &heard)
	})
}

// TestManyLines: the questions of many lines do not cut off a node with a small bound of owed
// replies.
func TestManyLines(t *testing.T) {
	for _, limit := range []int{4, 128} {
		cluster.Run(t, fmt.Sprint(limit), func(t *testing.T) {
			const n = 200
			r := cluster.New(t, 1, func(c *redlock.Config) { knobs.Of(c).MaxInFlight = limit })
			other := cluster.Connect(t, fakeredis.Addrs(r.Servers))
			var held []redlock.Lock
			var waits []<-chan testkit.Result[redlock.Lock]
			for i := range n {
				key := fmt.Sprint("k", i)
				held = append(held, cluster.MustAcquire(t, other, key, ttl))
				waits = append(waits, acquiring(t, r.Client, key))
			}
			awaitTracked(t, r.Servers[0], 2*n)
			for _, l := range held {
				l.ReleaseAsync()
			}
			for _, wait := range waits {
				l := locked(t, wait)
				l.ReleaseAsync()
			}
			require.EqualValues(t, 1, r.Stats().Nodes[0].Connects)
		})
	}
}
