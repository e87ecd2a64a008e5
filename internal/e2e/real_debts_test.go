package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// TestRealReleasesAreOwed: connections end at any moment, and callers give up at
// any moment. What was set for them, and what they could not give back to a node
// that was away, is released on its next connection; none of it waits for its TTL.
//
// While two of the three are away, each attempt fails at once and is cleaned up
// after: tens of thousands of them, which must not drive out what is owed in earnest.
func TestRealReleasesAreOwed(t *testing.T) {
	t.Parallel()
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		t.Parallel()
		servers := realredis.StartN(t, 3, realredis.Options{Kind: kind})
		admins := cluster.NewAdmins(t, servers)
		var clients []*redlock.Client
		var held atomic.Int64
		ctx, stop := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		defer wg.Wait()
		defer stop()
		for i := range 2 {
			c := cluster.Connect(t, cluster.RealAddrs(servers), cluster.Portable(i == 1), cluster.NodeTimeout(20*time.Millisecond))
			clients = append(clients, c)
			for g := range 8 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					rng := rand.New(rand.NewPCG(uint64(i), uint64(g)))
					for ctx.Err() == nil {
						if fickle(ctx, c, fmt.Sprint("key ", rng.IntN(64)), rng) {
							held.Add(1)
						}
					}
				}()
			}
		}
		rng := rand.New(rand.NewPCG(2, 2))
		for range 40 {
			admins[rng.IntN(len(admins))].Cut()
			before := held.Load()
			testkit.Await(t, "another lock", func() bool { return held.Load() > before })
		}
		stop()
		testkit.Join(t, &wg)
		for _, c := range clients {
			s := cluster.Settle(t, c)
			require.Positive(t, s.Cleanups)
			connects := uint64(0)
			for _, n := range s.Nodes {
				connects += n.Connects
			}
			require.Greater(t, connects, uint64(len(admins)), "there was a second connection")
		}
		cluster.AwaitNothing(t, admins)
	})
}

// fickle takes a lock and gives it back, and may not wait for the one nor the
// other. It says whether the lock was held.
func fickle(ctx context.Context, c *redlock.Client, key string, rng *rand.Rand) bool {
	waits := func() (context.Context, context.CancelFunc) {
		if rng.IntN(2) == 0 {
			return context.WithCancel(context.Background())
		}
		return context.WithTimeout(ctx, time.Duration(rng.IntN(2000))*time.Microsecond)
	}
	attempt, cancel := waits()
	defer cancel()
	l, err := c.TryAcquire(attempt, key, ttl)
	if err != nil {
		return false
	}
	release, cancel := waits()
	defer cancel()
	_ = l.Release(release) // once, with any result
	return true
}
