package e2e

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// fenceTTL is the longest TTL in tests of fencing, and so a quarantine.
const fenceTTL = 300 * time.Millisecond

// fenced makes a client fenced, by a wrong clock.
func fenced(off time.Duration) func(*redlock.Config) {
	return func(c *redlock.Config) {
		c.Fenced, c.MaxTTL, knobs.Of(c).TrustRestarts = true, fenceTTL, true
		knobs.Of(c).FenceClock = func() time.Time { return virtual.TimeOfDay().Add(off) }
	}
}

// TestFencedStartIsSilent: where nodes have their vote in fencing New warns of nothing. It has asked them before it says that
// they have none.
func TestFencedStartIsSilent(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		servers := cluster.Start(t, 3)
		starts := func() (*redlock.Client, string) {
			var log testkit.LogSink
			c := cluster.Connect(t, fakeredis.Addrs(servers), fenced(0), func(c *redlock.Config) { c.Logger = log.Logger(slog.LevelWarn) })
			time.Sleep(2 * time.Second)
			cluster.AwaitHooks(t, c)
			return c, log.String()
		}
		c, said := starts()
		require.Equal(t, 1, strings.Count(said, "no lock can be acquired yet"), said)
		require.NoError(t, c.InitFencing(t.Context()))
		_, said = starts()
		require.Empty(t, said)
	})
}

// TestFence: tokens grow from lock to lock, by clocks hours apart, for each key of several, and for
// each holder of a lock in a hand-over.
func TestFence(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		servers := cluster.Start(t, 3)
		nodes := fakeredis.Addrs(servers)
		first := cluster.Connect(t, nodes, fenced(0))
		_, err := first.TryAcquire(t.Context(), "k", fenceTTL)
		require.ErrorIs(t, err, redlock.ErrForgotten)
		require.ErrorContains(t, err, "InitFencing")
		require.ErrorIs(t, cluster.Submit(t, first, &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: fenceTTL}), redlock.ErrForgotten)
		require.NoError(t, first.InitFencing(t.Context()))
		require.NoError(t, first.InitFencing(t.Context()), "again, at once")
		require.ErrorIs(t, errorOf(first.TryAcquire(t.Context(), "redlock:fence", fenceTTL)), redlock.ErrArgument)

		var last uint64
		grows := func(l redlock.Lock) {
			t.Helper()
			require.Greater(t, l.Fence(), last)
			last = l.Fence()
		}
		clients := []*redlock.Client{first, cluster.Connect(t, nodes, fenced(time.Hour)), cluster.Connect(t, nodes, fenced(-time.Hour))}
		plain := cluster.Connect(t, nodes)
		for range 3 {
			for _, c := range clients {
				l := cluster.MustAcquire(t, c, "k", fenceTTL)
				grows(l)
				for _, other := range append(clients, plain) {
					require.ErrorIs(t, errorOf(other.TryAcquire(t.Context(), "k", fenceTTL)), redlock.ErrTaken)
				}
				require.NoError(t, l.Extend(t.Context(), fenceTTL))
				require.Equal(t, last, l.Fence())
				require.NoError(t, l.Release(t.Context()))
			}
		}
		l := testkit.Must(first.TryAcquireAll(t.Context(), fenceTTL, "other", "k"))(t)
		grows(l)
		require.NoError(t, l.Release(t.Context()))
		op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("k"), TTL: fenceTTL}
		require.NoError(t, cluster.Submit(t, first, op))
		require.Greater(t, op.Fence(), last)
		last = op.Fence()
		require.NoError(t, submitAs(t, first, op, redlock.OpRelease))
		require.NoError(t, submitAs(t, plain, op, redlock.OpAcquire))
		require.Zero(t, op.Fence(), "it has no token of another client")
		require.NoError(t, submitAs(t, plain, op, redlock.OpRelease))

		l = cluster.MustAcquire(t, plain, "k", fenceTTL)
		require.Zero(t, l.Fence())
		require.NoError(t, l.Release(t.Context()))

		l = cluster.MustAcquire(t, first, "k", fenceTTL)
		grows(l)
		for range 100 { // some are handed over, some are granted by the nodes
			next := testkit.InBackground(func() (redlock.Lock, error) { return first.Acquire(t.Context(), "k", fenceTTL) })
			testkit.Await(t, "in line", func() bool { return first.Stats().InLine == 1 })
			require.NoError(t, l.Release(t.Context()))
			got := locked(t, next)
			l = got
			grows(l)
		}
		require.NotZero(t, first.Stats().HandedOver)
	})
}

// TestForgetful: a node without its tokens has no vote until it was in quarantine and has learned
// them; more than one of three is for an operator.
func TestForgetful(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		servers := cluster.Start(t, 3)
		nodes := fakeredis.Addrs(servers)
		var y cluster.HookRecorder
		c := cluster.Connect(t, nodes, fenced(0), cluster.NodeTimeout(100*time.Millisecond), cluster.Listening(&y))
		require.NoError(t, c.InitFencing(t.Context()))
		l := cluster.MustAcquire(t, c, "k", fenceTTL)
		last := l.Fence()
		require.NoError(t, l.Release(t.Context()))
		cluster.Take(&y, &y.Quarantined)

		servers[0].Flush()
		began := time.Now()
		servers[1].Hang() // the third and the forgetful one would be a quorum
		ctx := testkit.Limited(t, fenceTTL/2)
		require.ErrorIs(t, errorOf(c.Acquire(ctx, "k", 100*time.Millisecond)), context.DeadlineExceeded)
		require.NoError(t, servers[1].Heal())
		back := cluster.Connect(t, nodes, fenced(-time.Hour))
		testkit.Await(t, "a vote of the node that had forgotten", func() bool {
			l := testkit.Must(back.Acquire(t.Context(), "k", fenceTTL))(t)
			require.Greater(t, l.Fence(), last)
			last = l.Fence()
			require.NoError(t, l.Release(t.Context()))
			return back.Stats().Nodes[0].Granted > 0
		})
		require.Greater(t, time.Since(began), fenceTTL)
		withheld := cluster.Take(&y, &y.Quarantined)
		require.Len(t, withheld, 1, "once")
		require.ErrorContains(t, withheld[0].NoVote, "its quarantine ends in")
		require.Positive(t, withheld[0].NoVoteFor)

		servers[0].Flush()
		servers[1].Flush()
		var err error
		testkit.Await(t, "too many have forgotten", func() bool {
			err = errorOf(back.Acquire(t.Context(), "k", fenceTTL))
			return err != nil
		})
		require.ErrorIs(t, err, redlock.ErrForgotten)
		require.ErrorContains(t, cluster.IsReady(back), "2 of 3 nodes failed")
		require.ErrorContains(t, cluster.IsReady(back), servers[1].Addr()+" node may have forgotten")
		ready := testkit.Start(func() error { return back.Ready(t.Context()) })
		require.NoError(t, c.RecoverFencing(t.Context(), last))
		require.NoError(t, testkit.Outcome(t, "Ready", ready))
		l = cluster.MustAcquire(t, back, "k", fenceTTL)
		require.Greater(t, l.Fence(), last)
	})
}

// TestFleets: clients with another MaxTTL, or other nodes, get an error with its name.
func TestFleets(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		servers := cluster.Start(t, 3)
		nodes := fakeredis.Addrs(servers)
		c := cluster.Connect(t, nodes, fenced(0))
		require.NoError(t, c.InitFencing(t.Context()))
		other := cluster.Connect(t, nodes, fenced(0), func(c *redlock.Config) { c.MaxTTL *= 2 })
		_, err := other.Acquire(t.Context(), "k", fenceTTL)
		require.ErrorIs(t, err, redlock.ErrConfig)
		require.Regexp(t, `:\d+ have "(nodes-[0-9a-f]+,quorum-2-of-3,MaxTTL-)`+fenceTTL.String()+`", this client has nodes-[0-9a-f]+,quorum-2-of-3,MaxTTL-`+(2*fenceTTL).String()+`\)`, err.Error())
		require.ErrorContains(t, cluster.IsReady(other), "another configuration")
		require.ErrorIs(t, other.InitFencing(t.Context()), redlock.ErrConfig)
		apart := cluster.Connect(t, nodes, fenced(0), func(c *redlock.Config) { c.MaxTTL *= 2; knobs.Of(c).FenceSet = "another" })
		require.NoError(t, apart.InitFencing(t.Context()))
		cluster.MustAcquire(t, apart, "k", fenceTTL)

		require.ErrorIs(t, cluster.Connect(t, nodes).InitFencing(t.Context()), redlock.ErrConfig)
	})
}
