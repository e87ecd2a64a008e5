package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// TestRealKills: two clients with 16 goroutines each fight for three keys while
// one or two of five nodes are killed and started anew. They lose no key by it,
// so that there are never two holders; and three nodes are enough to go on.
func TestRealKills(t *testing.T) {
	servers := realredis.StartN(t, 5, realredis.Options{Persistent: true})
	keys := []*cluster.Section{{Key: "a"}, {Key: "b"}, {Key: "c"}}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	for c := range 2 {
		client := cluster.Connect(t, cluster.PersistentAddrs(servers), cluster.Portable(c == 1), cluster.NodeTimeout(50*time.Millisecond))
		for g := range 16 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				me := int64(1 + 16*c + g)
				rng := rand.New(rand.NewPCG(1, uint64(me)))
				for ctx.Err() == nil {
					cluster.Contend(ctx, t, client, keys[rng.IntN(len(keys))], me, rng)
				}
			}()
		}
	}
	progress := func(when string) {
		for _, g := range keys {
			before := g.Turns.Load()
			testkit.Await(t, "progress on "+g.Key+" "+when, func() bool { return g.Turns.Load() > before })
		}
	}
	progress("at first")
	for _, victims := range [][]*realredis.Server{servers[:1], servers[1:2], servers[:2]} {
		for _, s := range victims {
			require.NoError(t, s.Kill())
		}
		progress(fmt.Sprintf("without %d nodes", len(victims)))
		for _, s := range victims {
			require.NoError(t, s.Restart())
		}
		progress("afterwards")
	}
	stop()
	testkit.Join(t, &wg)
	for _, g := range keys {
		require.Equal(t, g.Turns.Load(), g.Counter.Load(), "counts were lost")
	}
}

// TestRealKillsLoseNoLock: nodes that write what they do to disk before they
// answer may be killed while a lock is held, and a quorum still knows it.
func TestRealKillsLoseNoLock(t *testing.T) {
	servers := realredis.StartN(t, 5, realredis.Options{Persistent: true})
	each := func(of []*realredis.Server, f func(*realredis.Server) error) {
		for _, s := range of {
			require.NoError(t, f(s))
		}
	}
	ours, theirs := cluster.Connect(t, cluster.PersistentAddrs(servers)), cluster.Connect(t, cluster.PersistentAddrs(servers))
	each(servers[3:], (*realredis.Server).Kill)
	l := cluster.MustAcquire(t, ours, "k", ttl) // no node may forget it now
	each(servers[3:], (*realredis.Server).Restart)
	each(servers[:2], (*realredis.Server).Kill)
	each(servers[:2], (*realredis.Server).Restart)
	testkit.Await(t, "a refusal", func() bool {
		_, err := theirs.TryAcquire(t.Context(), "k", ttl)
		require.Error(t, err, "two hold it")
		return err == redlock.ErrTaken
	})
	testkit.Await(t, "an extension", func() bool { return l.Extend(t.Context(), ttl) == nil })
	require.NoError(t, l.Release(t.Context()))
	again, err := theirs.Acquire(t.Context(), "k", ttl)
	require.NoError(t, err)
	require.NoError(t, again.Release(t.Context()))
}

// TestRealFreezes: one or two of five nodes that stand still delay no
// caller; three do, for no longer than the timeout. When they go on they do
// what they were asked to before, and nothing stays behind: a key is released on
// the connection over which it was set, or on the next if that one was given up.
func TestRealFreezes(t *testing.T) {
	for name, stall := range map[string]time.Duration{
		"connections are kept":     testkit.Patience,
		"connections are given up": 250 * time.Millisecond,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := realredis.StartN(t, 5)
			admins := cluster.NewAdmins(t, servers)
			calm := cluster.Connect(t, cluster.RealAddrs(servers)) // whom a timeout would cost much
			hasty := cluster.Connect(t, cluster.RealAddrs(servers), cluster.NodeTimeout(250*time.Millisecond),
				func(cfg *redlock.Config) { cfg.StallTimeout = stall })
			for i, s := range servers[:3] {
				require.NoError(t, s.Stop())
				if i == 2 {
					break
				}
				testkit.AtOnce(t, func() {
					for range 10 {
						live(t, calm, "k")
					}
				})
			}
			for range 2 {
				testkit.AtOnce(t, func() {
					_, err := hasty.TryAcquire(t.Context(), "k", ttl)
					var quorum *redlock.QuorumError
					require.True(t, errors.As(err, &quorum))
					require.Len(t, quorum.Failed, 3)
					for i, failed := range quorum.Failed {
						require.Equal(t, i, failed.Node)
						require.Equal(t, servers[i].Addr(), failed.Addr)
					}
				})
			}
			for _, s := range servers[:3] {
				require.NoError(t, s.Cont())
			}
			cluster.AwaitNothing(t, admins)
			awaitAllVote(t, hasty, admins)
			cluster.AwaitNothing(t, admins)
		})
	}
}
