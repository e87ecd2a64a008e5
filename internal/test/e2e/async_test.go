package e2e

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestReleaseAsync: the handle is dead at once, and the release keeps its place before an acquire
// of the same key, and travels with it: a pair is one round trip.
func TestReleaseAsync(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		const pairs = 100
		r := cluster.New(t, 5, cluster.Portable(portable))
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		before := cluster.Settle(t, r.Client)
		for range pairs {
			l.ReleaseAsync()
			require.Empty(t, l.Token())
			require.Zero(t, l.Remaining())
			l.ReleaseAsync()
			require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
			require.Equal(t, redlock.ErrNotHeld, l.Extend(t.Context(), ttl))
			l = cluster.MustAcquire(t, r.Client, "k", ttl) // in one attempt
		}
		after := cluster.Settle(t, r.Client)
		require.EqualValues(t, pairs, after.Release.Won-before.Release.Won, "each is sent once")
		require.EqualValues(t, 2*pairs, after.Operations-before.Operations)
		require.Less(t, after.Batches-before.Batches, uint64(pairs+pairs/4), "a pair is a round trip")
		require.Equal(t, 1, after.Held)
		awaitPassed(t, 50*time.Millisecond) // the client sleeps
		l.ReleaseAsync()
		r.AwaitEmpty(t)
		require.Zero(t, cluster.Settle(t, r.Client).Held)
		redlock.Lock{}.ReleaseAsync()
	})
}

// TestReleaseAsyncAtOnce: thousands at once, beyond a node's bound of owed replies and beyond the
// queue's room, cut no node off, and none is refused.
func TestReleaseAsyncAtOnce(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const n = 3000
		r := cluster.New(t, 3, func(cfg *redlock.Config) { knobs.Of(cfg).MaxInFlight, cfg.MaxWaiting = 64, 128 })
		var locks []redlock.Lock
		for i := range n {
			locks = append(locks, cluster.MustAcquire(t, r.Client, fmt.Sprint("k", i), ttl))
		}
		r.Servers.Delay(2 * time.Millisecond)
		var goroutines sync.WaitGroup
		for _, l := range locks {
			goroutines.Add(1)
			go func() {
				defer goroutines.Done()
				l.ReleaseAsync()
			}()
		}
		testkit.Join(t, &goroutines)
		r.AwaitEmpty(t)
		s := cluster.Settle(t, r.Client)
		require.EqualValues(t, n, s.Release.Won)
		require.Zero(t, s.Release.Refused)
		require.Zero(t, s.Held)
		for _, node := range s.Nodes {
			require.EqualValues(t, 1, node.Connects)
		}
	})
}

// TestReleaseAsyncIsHandedOff to a node that was down, and after Close to none.
func TestReleaseAsyncIsHandedOff(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		set, err := r.AcquireAll(t.Context(), ttl, "a", "b")
		require.NoError(t, err)
		late := cluster.MustAcquire(t, r.Client, "late", ttl)
		for _, key := range []string{"k", "b", "late"} {
			r.AwaitHolders(t, 3, key)
		}
		r.Servers[0].Down()
		cluster.AwaitNodesUp(t, r.Client, 2)
		l.ReleaseAsync()
		set.ReleaseAsync()
		testkit.Await(t, "the release", func() bool { return r.Holders("k") == 1 && r.Holders("a") == 1 && r.Holders("b") == 1 })
		require.NoError(t, r.Servers[0].Heal())
		testkit.Await(t, "the handoff", func() bool { return r.Holders("k") == 0 && r.Holders("a") == 0 && r.Holders("b") == 0 })

		require.NoError(t, r.Close())
		late.ReleaseAsync()
		late.ReleaseAsync()
		require.Empty(t, late.Token())
		s := r.Stats()
		require.EqualValues(t, 1, s.Release.Refused)
		require.EqualValues(t, 2, s.Release.Won)
		require.Equal(t, 3, r.Holders("late"))
	})
}
