package e2e

import (
	"context"
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

// TestATermStopsNoOther: after the restart of two masters beside a lock of an hour by Options.AtLeast, its callers wait for
// the hour, and other locks for their own TTL. MaxTTL bounds these alone.
func TestATermStopsNoOther(t *testing.T) {
	const night, short = time.Hour, 2 * time.Second
	for name, maxTTL := range map[string]time.Duration{"plain": 0, "MaxTTL": short} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.New(t, 3, func(c *redlock.Config) { c.MaxTTL = maxTTL })
			time.Sleep(night + 3*time.Minute) // a strict client has met masters that have just begun
			other := cluster.Connect(t, fakeredis.Addrs(r.Servers), func(c *redlock.Config) { c.MaxTTL = maxTTL })
			liveFor(t, r.Client, "day", short)
			liveFor(t, other, "day", short)
			var granted time.Time
			require.NoError(t, r.With(redlock.Options{AtLeast: night}).Do(t.Context(), "night", short, func(context.Context) error {
				granted = time.Now()
				return nil
			}))
			nightly := other.With(redlock.Options{AtLeast: night})
			require.Equal(t, redlock.ErrTaken, nightly.TryDo(t.Context(), "night", short, nothing))
			time.Sleep(time.Second)
			restarted := time.Now()
			for _, s := range r.Servers[:2] {
				require.NoError(t, s.Restart(true))
			}
			for _, c := range []*redlock.Client{r.Client, other} {
				testkit.Await(t, "new connections", func() bool { return c.Stats().Nodes[0].Connects > 1 && c.Stats().Nodes[1].Connects > 1 })
			}
			require.ErrorIs(t, nightly.TryDo(t.Context(), "night", short, nothing), redlock.ErrNoQuorum)
			_, err := other.TryAcquire(t.Context(), "day", short)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)

			for {
				l, err := other.Acquire(t.Context(), "day", short)
				if err == nil {
					require.NoError(t, l.Release(t.Context()))
					break
				}
				require.ErrorIs(t, err, redlock.ErrNoQuorum)
				require.Less(t, time.Since(restarted), 2*short)
			}
			require.InDelta(t, short.Seconds(), time.Since(restarted).Seconds(), .3)
			err = nightly.TryDo(t.Context(), "night", short, nothing)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.Regexp(t, `up for [2-3]s.*: no vote for 1h[0-2]m`, err.Error())

			for nightly.TryDo(t.Context(), "night", short, nothing) != nil {
				liveFor(t, other, "day", short)
				time.Sleep(time.Minute)
			}
			require.Greater(t, time.Since(granted), night)
			require.Less(t, time.Since(granted), night+4*time.Minute)
		})
	}
}
