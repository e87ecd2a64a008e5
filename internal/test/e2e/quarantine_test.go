package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestQuarantine: a client that has seen the master before, and has used a TTL as long, refuses
// its vote until the lock is over, and then counts it again by itself. Its hooks and Stats show that.
func TestQuarantine(t *testing.T) {
	var y cluster.HookRecorder
	cluster.On(t, 3, func(t *testing.T, r *cluster.Cluster) {
		const brief = 1500 * time.Millisecond
		heard := func() (votes [3]uint64, failed []redlock.Vote) { // of node 0: granted, denied and failed ones
			cluster.Settle(t, r.Client)
			cluster.AwaitHooks(t, r.Client)
			y.Mu.Lock()
			votes, y.Votes[0] = y.Votes[0], [3]uint64{}
			y.Mu.Unlock()
			return votes, slices.DeleteFunc(cluster.Take(&y, &y.Failed), func(v redlock.Vote) bool { return v.Node != 0 })
		}
		node := func() redlock.Node { return r.Stats().Nodes[0] }
		liveFor(t, r.Client, "another", brief)
		require.NoError(t, r.Servers[0].Restart(true))
		testkit.Await(t, "a new connection", func() bool { return node().Connects > 1 })
		heard()
		withheld := cluster.Take(&y, &y.Quarantined)
		require.Len(t, withheld, 1)
		require.Equal(t, []any{0, true}, []any{withheld[0].Index, withheld[0].Up})
		require.LessOrEqual(t, withheld[0].NoVoteFor, brief+cluster.Drift(brief))
		liveFor(t, r.Client, "k", brief)
		require.Less(t, node().NoVoteFor, withheld[0].NoVoteFor, "it counts down")
		_, failed := heard()
		require.NotEmpty(t, failed, "it was asked all the same")
		for _, v := range failed {
			require.Equal(t, conn.ErrQuarantined, v.Err)
		}
		testkit.Await(t, "a vote", func() bool { return node().NoVoteFor == 0 })
		liveFor(t, r.Client, "k", brief)
		votes, _ := heard()
		require.GreaterOrEqual(t, votes[0], uint64(3), "each operation")
		require.Zero(t, votes[2])
		require.Empty(t, cluster.Take(&y, &y.Quarantined), "once")
		require.EqualValues(t, 2, node().Connects, "nothing else brought it back")
	}, cluster.Listening(&y))
}
