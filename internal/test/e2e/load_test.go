package e2e

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestBusy: an operation beyond MaxWaiting waiting ones is refused at once, and an Acquire tries again.
func TestBusy(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3, func(c *redlock.Config) { c.MaxWaiting = 1 })
		unclogged := r.Clog(t) // one waits, as many as may
		began := time.Now()
		require.Equal(t, redlock.ErrBusy, errorOf(r.TryAcquire(t.Context(), "k", ttl)))
		require.Equal(t, redlock.ErrBusy, submitRefused(r.Client, "k"))
		require.Equal(t, began, time.Now())
		waiting := acquiring(t, r.Client, "k")
		time.Sleep(100 * time.Millisecond)
		r.Heal(t)
		unclogged()
		require.NoError(t, locked(t, waiting).Release(t.Context()))
	})
}

// TestOpOfAnotherLockIsOwed: an Op acquires a lock never received by one node, and then releases
// another. This is not taken for the release of the first.
func TestOpOfAnotherLockIsOwed(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("held"), TTL: ttl}
		require.NoError(t, cluster.Submit(t, r.Client, op))
		held := op.Token
		testkit.Await(t, "set everywhere", func() bool { return r.Holders("held") == 3 })
		r.Servers[2].Down()
		testkit.Await(t, "node 2 down", func() bool { return !r.Stats().Nodes[2].Up })
		op.Key = []byte("unheard of")
		require.NoError(t, cluster.Submit(t, r.Client, op))
		require.NoError(t, submitAs(t, r.Client, op, redlock.OpRelease))
		op.Kind, op.Key = redlock.OpAcquire, []byte("unheard of")
		require.NoError(t, cluster.Submit(t, r.Client, op))
		last := op.Token
		op.Kind, op.Key, op.Token = redlock.OpRelease, []byte("held"), held
		require.NoError(t, cluster.Submit(t, r.Client, op))
		op.Key, op.Token = []byte("unheard of"), last
		require.NoError(t, cluster.Submit(t, r.Client, op))
		require.NoError(t, r.Servers[2].Heal())
		r.AwaitEmpty(t)
	})
}

// TestManyForbiddenReleases: each is repeated alone, on a slow network. More than a node may owe replies wait in the queue:
// the connection is not closed for too quick sending. There is one node, so none lags behind a quorum of the others.
func TestManyForbiddenReleases(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const limit, operations = 2048, 8192
		r := cluster.New(t, 1, func(c *redlock.Config) { knobs.Of(c).MaxInFlight = limit })
		r.Servers.Delay(15 * time.Millisecond)
		r.Servers.Each(allowLocks)
		for range 10 { // the client measures the round trip
			live(t, r.Client, "lock:a")
		}
		done := make(chan struct{}, operations)
		for i := range operations {
			require.NoError(t, r.Submit(releaseOp(fmt.Sprint("evil:", i), func(*redlock.Op) { done <- struct{}{} })))
		}
		for range operations {
			testkit.Get(t, done)
		}
		n := cluster.Settle(t, r.Client).Nodes[0]
		require.NoError(t, n.Err)
		require.EqualValues(t, 1, n.Connects)
	})
}

// TestManyForbiddenHints: a node refuses many of its missed releases, for their keys. Each is then
// sent again by itself. The node gets the others, and its connection stays.
func TestManyForbiddenHints(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		// A node may owe so many replies, fewer than there are hints.
		const limit, hints = 2048, 5000
		r := cluster.New(t, 3, func(c *redlock.Config) { knobs.Of(c).MaxInFlight = limit })
		l := cluster.MustAcquire(t, r.Client, "lock:honest", ttl)
		r.AwaitHolders(t, 3, l.Key())
		var lastAlone atomic.Bool
		allowLocks(r.Servers[0])
		r.Servers[0].Down()
		cluster.AwaitNodesUp(t, r.Client, 2)
		done := make(chan struct{}, hints)
		last := fmt.Sprint(forbidden, hints-1)
		for i := range hints {
			require.NoError(t, r.Submit(releaseOp(fmt.Sprint(forbidden, i), func(*redlock.Op) { done <- struct{}{} })))
		}
		for range hints {
			testkit.Get(t, done)
		}
		require.NoError(t, l.Release(t.Context()))
		r.Servers[0].OnCommand(func(_ int64, args []string) {
			if args[0] == "EVALSHA" && args[2] == "1" && args[3] == last {
				lastAlone.Store(true)
			}
		})
		require.NoError(t, r.Servers[0].Heal())
		testkit.Await(t, "the last hint by itself", lastAlone.Load)
		awaitNoLock(t, r)
		n := cluster.Settle(t, r.Client).Nodes[0]
		require.True(t, n.Up)
		require.EqualValues(t, 2, n.Connects)
	})
}
