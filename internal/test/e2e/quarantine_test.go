package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// thinly acquires a lock on the first three of five masters alone: its client cannot reach the
// others.
func thinly(t *testing.T, servers fakeredis.Servers, key string, ttl time.Duration) redlock.Lock {
	t.Helper()
	m := cluster.NewMachine(t)
	servers[3:].Each(func(s *fakeredis.Server) { m.Link(s.Addr()).Refuse(true) })
	l := cluster.MustAcquire(t, cluster.ConnectOn(t, m, fakeredis.Addrs(servers)), key, ttl)
	for _, s := range servers[:3] {
		testkit.Await(t, "set", func() bool { _, ok := s.Get(key); return ok })
	}
	return l
}

// restartUnder restarts a master, empty, and waits until each client has noticed.
func restartUnder(t *testing.T, server *fakeredis.Server, node int, clients ...*redlock.Client) {
	t.Helper()
	var before []uint64
	for _, c := range clients {
		before = append(before, c.Stats().Nodes[node].Connects)
	}
	require.NoError(t, server.Restart(true))
	for i, c := range clients {
		testkit.Await(t, "a new connection", func() bool { return c.Stats().Nodes[node].Connects > before[i] })
	}
}

// requireQuarantined requires that a client gets the lock of another after its end, and not before.
func requireQuarantined(t *testing.T, c *redlock.Client, theirs redlock.Lock, ttl time.Duration) {
	t.Helper()
	l := testkit.Must(c.Acquire(t.Context(), theirs.Key(), ttl))(t)
	require.Zero(t, theirs.Remaining(), "two hold it")
	require.NoError(t, l.Release(t.Context()))
}

// TestQuarantine: a client that has seen the master before, and has used a TTL as long, refuses
// its vote until the lock is over, and then counts it again by itself.
func TestQuarantine(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const brief = 1500 * time.Millisecond
		servers := cluster.Start(t, 5)
		var y cluster.HookRecorder
		c := cluster.Connect(t, fakeredis.Addrs(servers), cluster.Listening(&y))
		heard := func() (votes [3]uint64, of0 []redlock.Vote) { // granted, denied and failed ones of node 0
			cluster.Settle(t, c)
			cluster.AwaitHooks(t, c)
			y.Mu.Lock()
			votes, y.Votes[0] = y.Votes[0], [3]uint64{}
			y.Mu.Unlock()
			return votes, slices.DeleteFunc(cluster.Take(&y, &y.Failed), func(v redlock.Vote) bool { return v.Node != 0 })
		}
		liveFor(t, c, "another", brief)
		l := thinly(t, servers, "k", brief)
		heard()

		restartUnder(t, servers[0], 0, c)
		heard()
		withheld := cluster.Take(&y, &y.Quarantined)
		require.Len(t, withheld, 1)
		require.Zero(t, withheld[0].Index)
		require.True(t, withheld[0].Up)
		require.Positive(t, withheld[0].NoVoteFor)
		require.LessOrEqual(t, withheld[0].NoVoteFor, brief+cluster.Drift(brief))
		require.Error(t, errorOf(c.TryAcquire(t.Context(), "k", brief)))
		require.Less(t, c.Stats().Nodes[0].NoVoteFor, withheld[0].NoVoteFor, "it counts down")
		_, failed := heard()
		require.NotEmpty(t, failed, "it was asked all the same")
		for _, v := range failed {
			require.Equal(t, conn.ErrQuarantined, v.Err)
		}
		requireQuarantined(t, c, l, brief)
		testkit.Await(t, "a vote", func() bool { return c.Stats().Nodes[0].NoVoteFor == 0 })
		heard()

		for range 3 {
			liveFor(t, c, "k", brief)
		}
		votes, _ := heard()
		require.EqualValues(t, 9, votes[0], "each operation")
		require.Zero(t, votes[2])
		require.Empty(t, cluster.Take(&y, &y.Quarantined), "once")
		require.EqualValues(t, 2, c.Stats().Nodes[0].Connects, "nothing else brought it back")
	})
}

// TestStrictQuarantine: with Config.MaxTTL, clients are safe too if they come after the restart, or have
// not used any TTL. Masters that were up before have a vote, also where only Config.MaxTTL and its
// drift are a reason to wait.
func TestStrictQuarantine(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		const longest = 10 * time.Second
		servers := cluster.Start(t, 5)
		strict := func() *redlock.Client {
			return cluster.Connect(t, fakeredis.Addrs(servers), func(c *redlock.Config) { c.MaxTTL = longest })
		}
		early := strict()
		for _, n := range early.Stats().Nodes {
			require.Greater(t, n.NoVoteFor, longest)
			require.LessOrEqual(t, n.NoVoteFor, longest+cluster.Drift(longest)+time.Second, "a second may not be whole")
		}
		require.NoError(t, early.Ready(t.Context()))
		time.Sleep(2 * longest)
		for i, n := range strict().Stats().Nodes {
			require.Zero(t, n.NoVoteFor, "node %d was there before", i)
		}

		l := thinly(t, servers, "k", longest)
		restartUnder(t, servers[0], 0, early)
		late := strict()
		for i, n := range late.Stats().Nodes {
			require.Equal(t, i == 0, n.NoVoteFor > 0)
		}
		requireQuarantined(t, early, l, longest)
		l = thinly(t, servers, "other", longest)
		restartUnder(t, servers[1], 1, early, late)
		requireQuarantined(t, late, l, longest)
	})
}
