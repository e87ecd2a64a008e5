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

// loadTime is how long the goroutines try.
func loadTime() time.Duration {
	if testkit.Long() {
		return 2 * time.Second
	}
	return 300 * time.Millisecond
}

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

// TestBurstOnASlowNetwork: more operations than a node may owe replies wait in the queue. The
// connection is not closed for too quick sending. There is one node, so none lags behind a quorum
// of the others.
func TestBurstOnASlowNetwork(t *testing.T) {
	const limit, operations = 2048, 8192
	for _, kind := range []redlock.OpKind{redlock.OpAcquire, redlock.OpRelease} {
		cluster.Run(t, kind.String(), func(t *testing.T) {
			r := cluster.New(t, 1, func(c *redlock.Config) { knobs.Of(c).MaxInFlight = limit })
			for _, s := range r.Servers {
				s.Delay(15 * time.Millisecond)
				if kind == redlock.OpRelease {
					allowLocks(s) // each release is repeated alone
				}
			}
			for range 10 { // the client measures the round trip
				live(t, r.Client, "lock:a")
			}
			done := make(chan struct{}, operations)
			for i := range operations {
				op := releaseOp(fmt.Sprint("evil:", i), func(*redlock.Op) { done <- struct{}{} })
				if kind == redlock.OpAcquire {
					op.Kind, op.Key, op.TTL = kind, fmt.Append(nil, "lock:", i), ttl
				}
				require.NoError(t, r.Submit(op))
			}
			for range operations {
				testkit.Get(t, done)
			}
			for _, n := range cluster.Settle(t, r.Client).Nodes {
				require.NoError(t, n.Err)
				require.EqualValues(t, 1, n.Connects)
			}
		})
	}
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

// persist submits acquires again and again from Done until they are granted. The channel receives
// once for each of them.
func persist(t *testing.T, c *redlock.Client, operations int) (won <-chan error) {
	var over atomic.Bool
	t.Cleanup(func() { over.Store(true) }) // before Close is called
	results := make(chan error, operations)
	for i := range operations {
		op := &redlock.Op{Kind: redlock.OpAcquire, Key: fmt.Append(nil, i), TTL: ttl}
		op.Done = func(op *redlock.Op) {
			if op.Err() == nil {
				results <- nil
			} else if !over.Load() {
				if err := c.Submit(op); err != nil {
					results <- err
				}
			}
		}
		require.NoError(t, testkit.Try(t, "Submit", func() error { return c.Submit(op) }))
	}
	return results
}

// TestOutageEnds: operations submitted again from Done, without a quorum, do not keep the client
// from reaching the nodes again. Submit and Stats return promptly during the outage, and the
// connection to the healthy node stays.
func TestOutageEnds(t *testing.T) {
	for away := 3; away >= 2; away-- {
		t.Run(fmt.Sprint(away, " of 3 away"), func(t *testing.T) {
			testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
				r := cluster.New(t, 3, cluster.DefaultTimeouts, func(c *redlock.Config) { c.StallTimeout = testkit.Patience }, cluster.Portable(portable))
				r.Servers[3-away:].Down()
				cluster.AwaitNodesUp(t, r.Client, 3-away)

				const operations = 4
				won := persist(t, r.Client, operations)
				for began := time.Now(); time.Since(began) < 100*time.Millisecond; {
					cluster.Stats(t, r.Client)
				}
				r.Heal(t)
				for range operations {
					require.NoError(t, testkit.Outcome(t, "an operation after the outage", won))
				}
				if away == 2 {
					require.EqualValues(t, 1, cluster.Stats(t, r.Client).Nodes[0].Connects, "the healthy node was cut off")
				}
			})
		})
	}
}
