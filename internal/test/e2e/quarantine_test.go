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

		require.NoError(t, servers[0].Restart(true))
		testkit.Await(t, "a new connection", func() bool { return c.Stats().Nodes[0].Connects > 1 })
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
		next := testkit.Must(c.Acquire(t.Context(), "k", brief))(t)
		require.Zero(t, l.Remaining(), "two hold it")
		require.NoError(t, next.Release(t.Context()))
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
