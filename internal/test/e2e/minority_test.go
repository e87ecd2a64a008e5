package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// Three of five nodes are away in these tests. Many goroutines try to acquire,
// each its own key, without a pause.

// lostConns counts the ended connections of each node.
type lostConns [5]atomic.Int64

func (l *lostConns) count(c *redlock.Config) {
	c.Hooks.NodeDown = func(n redlock.Node) { l[n.Index].Add(1) }
}

// patientStall takes no slow node for dead: the machine may be busy.
func patientStall(c *redlock.Config) { c.StallTimeout = testkit.Patience }

// loadTime is how long the goroutines try.
func loadTime() time.Duration {
	if testkit.Long() {
		return 2 * time.Second
	}
	return 300 * time.Millisecond
}

// load has goroutines try to acquire, and returns the number of attempts. The keys are long: the
// hints for an absent node are bounded in bytes.
func load(t *testing.T, c *redlock.Client, goroutines int, d time.Duration) (attempts int64) {
	t.Helper()
	var n atomic.Int64
	var wg sync.WaitGroup
	until := time.Now().Add(d)
	for g := range goroutines {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for key := fmt.Sprintf("k%0100d", g); time.Now().Before(until); n.Add(1) {
				l, err := c.TryAcquire(context.Background(), key, ttl)
				if err == nil { // a node was late to go
					_ = l.Release(context.Background())
				} else if !testkit.IsAny(err, redlock.ErrNoQuorum, redlock.ErrTaken) {
					t.Error(err)
					return
				}
			}
		}()
	}
	testkit.Join(t, &wg)
	return n.Load()
}

// requireSpared requires that nodes 3 and 4 still have their first connection.
func requireSpared(t *testing.T, c *redlock.Client, lost *lostConns) {
	t.Helper()
	for _, n := range cluster.Stats(t, c).Nodes[3:] {
		require.Zero(t, lost[n.Index].Load(), "node %d was cut off", n.Index)
		require.EqualValues(t, 1, n.Connects, "node %d was dialled again", n.Index)
		require.True(t, n.Up)
	}
}

// requireFewCleanups requires that most attempts were sent to no node.
func requireFewCleanups(t *testing.T, c *redlock.Client, attempts int64) {
	t.Helper()
	require.Less(t, cluster.Stats(t, c).Cleanups, uint64(attempts/10))
}

// TestMinorityIsSpared: attempts without a quorum cost the healthy nodes neither their connections
// nor many releases, and leave no key, neither during the outage nor after nodes come back under
// load.
func TestMinorityIsSpared(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		var lost lostConns
		r := &cluster.Cluster{Servers: cluster.Start(t, 5)} // without recorders, for speed
		r.Client = cluster.Connect(t, fakeredis.Addrs(r.Servers), cluster.DefaultTimeouts, patientStall, cluster.Portable(portable), lost.count)
		t.Cleanup(func() { r.Heal(t) })
		r.Servers[:3].Down()
		cluster.AwaitNodesUp(t, r.Client, 2)
		attempts := load(t, r.Client, 64, loadTime())
		requireSpared(t, r.Client, &lost)
		requireFewCleanups(t, r.Client, attempts)
		r.AwaitEmpty(t)

		healed := testkit.Start(func() error {
			time.Sleep(loadTime() * 3 / 4) // the rest of the load comes after it
			for _, s := range r.Servers {
				if err := s.Heal(); err != nil {
					return err
				}
			}
			return nil
		})
		load(t, r.Client, 2048, loadTime())
		require.NoError(t, testkit.Outcome(t, "Heal", healed))
		cluster.AwaitNodesUp(t, r.Client, 5)
		r.AwaitEmpty(t)
		requireSpared(t, r.Client, &lost)
	})
}
