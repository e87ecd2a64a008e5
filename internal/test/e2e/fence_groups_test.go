package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/test/fencenode"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestFencedNextGroups: fenced clients change their groups while they run. Tokens of each key grow
// from step to step, also of a moving key not locked during step 1, by a clock an hour ahead. Nodes
// do not serve clients of steps 0 and 2 beside each other.
func TestFencedNextGroups(t *testing.T) {
	for name, lists := range map[string][2]int{"more": {2, 3}, "fewer": {3, 2}, "from one": {1, 3}, "to one": {3, 1}} {
		cluster.Run(t, name, func(t *testing.T) {
			c := &changing{t, cluster.Start(t, 9), map[string]uint64{}}
			connect := func(now, next int, off time.Duration) *redlock.Client {
				return cluster.Connect(t, nil, groupsFromTo(c.servers, now, next), fenced(off), cluster.NodeTimeout(100*time.Millisecond))
			}
			keys := make([]string, 3) // one of each group
			for i := 0; slices.Contains(keys, ""); i++ {
				keys[client.Number(fmt.Sprint("key", i), 3)] = fmt.Sprint("key", i)
			}
			old, ahead := connect(lists[0], 0, 0), connect(lists[0], 0, time.Hour)
			require.NoError(t, old.InitFencing(t.Context()))
			for _, key := range keys {
				c.grows(old, key)
				c.grows(ahead, "idle "+key)
			}
			both, next := connect(lists[0], lists[1], 0), connect(lists[1], 0, 0)
			refused := func(client *redlock.Client, text string) {
				t.Helper()
				for _, key := range keys {
					_, err := client.TryAcquire(t.Context(), key, fenceTTL)
					require.Error(t, err)
					require.NotErrorIs(t, err, redlock.ErrTaken)
				}
				c.refused(client, text)
			}
			if lists[1] > lists[0] {
				require.NoError(t, both.InitFencing(t.Context()), "nodes of new groups have no vote before")
			}
			require.NoError(t, both.Ready(t.Context()))
			for _, key := range keys {
				c.grows(both, key)
				c.grows(old, key)
				c.grows(both, key)
			}
			refused(next, "ChangeFencing")
			held := cluster.MustAcquire(t, old, "held", fenceTTL)
			c.last["held"] = held.Fence()
			began := time.Now()
			require.NoError(t, both.ChangeFencing(t.Context()))
			require.Greater(t, time.Since(began), fenceTTL, "locks of old clients have ended")
			refused(old, "all clients must have the same Nodes, or Groups")
			require.NoError(t, next.Ready(t.Context()))
			for _, key := range keys {
				c.grows(next, "idle "+key)
				c.grows(next, key)
				c.grows(both, key)
				c.grows(next, key)
			}
			c.grows(next, "held")
			began = time.Now()
			require.NoError(t, both.ChangeFencing(t.Context()), "once more")
			require.Less(t, time.Since(began), fenceTTL, "there is nothing to do")

			back := connect(lists[1], lists[0], 0)
			for _, key := range keys {
				c.grows(back, key)
			}
			require.NoError(t, back.ChangeFencing(t.Context()))
			for _, key := range keys {
				c.grows(old, "idle "+key)
				c.grows(old, key)
			}
			refused(next, "")
		})
	}
}

// TestFencedGroupsChangeTogether: no group serves clients of the next groups before all refuse
// those of the present ones, and all learn when one cannot come so far.
func TestFencedGroupsChangeTogether(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		c := &changing{t, cluster.Start(t, 9), map[string]uint64{}}
		client := func(now, next int) *redlock.Client {
			return cluster.Connect(t, nil, groupsFromTo(c.servers, now, next), fenced(0), cluster.NodeTimeout(100*time.Millisecond))
		}
		old := client(2, 0)
		require.NoError(t, old.InitFencing(t.Context()))
		both, next := client(2, 3), client(3, 0)
		require.NoError(t, both.InitFencing(t.Context()))
		moves := movingKey(t, 0, 2)
		c.grows(cluster.Connect(t, nil, groupsFromTo(c.servers, 2, 0), fenced(time.Hour)), moves)
		call := testkit.Start(func() error { return both.ChangeFencing(t.Context()) })
		awaitSealed := func(server int) {
			testkit.Await(t, "sealed", func() bool {
				n, _ := c.servers[server].Fence("redlock:fence")
				return n.Marker.Nonce != ""
			})
		}
		awaitSealed(8)
		c.servers[:2].Down()
		awaitPassed(t, 5*fenceTTL)
		for _, key := range []string{movingKey(t, 1, 1), movingKey(t, 1, 2), moves} {
			_, err := next.TryAcquire(t.Context(), key, fenceTTL)
			require.ErrorIs(t, err, redlock.ErrConfig, key)
		}
		require.NoError(t, c.servers[:2].Heal())
		var sealed []fencenode.Node // of the new group
		for _, s := range c.servers[6:] {
			n, _ := s.Fence("redlock:fence")
			sealed = append(sealed, n)
		}
		require.NoError(t, testkit.Outcome(t, "ChangeFencing", call))
		for i, s := range c.servers[6:] { // as if the call had not come to it
			s.SetFence("redlock:fence", sealed[i])
		}
		_, err := next.TryAcquire(t.Context(), moves, fenceTTL)
		require.ErrorIs(t, err, redlock.ErrConfig)
		require.NoError(t, both.ChangeFencing(t.Context()))
		c.grows(next, moves)

		back := client(3, 2)
		call = testkit.Start(func() error { return back.ChangeFencing(t.Context()) })
		awaitSealed(8)
		n, _ := c.servers[0].Fence("redlock:fence")
		n.Marker.Me.Fleet = "another"
		c.servers[0].SetFence("redlock:fence", n)
		err = testkit.Outcome(t, "ChangeFencing", call)
		require.ErrorIs(t, err, redlock.ErrConfig)
		require.ErrorContains(t, err, "Groups[0]: nodes hold")
	})
}

// TestFencedGroupsForgetInAChange: a group loses everything while it waits for another in a change.
// So does the other, and an operator gives both their vote, as before the change. The call begins
// again, since clients of step 0 are served again.
func TestFencedGroupsForgetInAChange(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		c := &changing{t, cluster.Start(t, 2), map[string]uint64{}}
		client := func(now, next int) *redlock.Client {
			list := func(n int) (groups [][]string) {
				for _, s := range c.servers[:n] {
					groups = append(groups, []string{s.Addr()})
				}
				return groups
			}
			return cluster.Connect(t, nil, func(c *redlock.Config) { c.Nodes, c.Groups, c.NextGroups = nil, list(now), list(next) }, fenced(0), cluster.NodeTimeout(100*time.Millisecond))
		}
		old := client(1, 0)
		require.NoError(t, old.InitFencing(t.Context()))
		both, next := client(1, 2), client(2, 0)
		require.NoError(t, both.InitFencing(t.Context()))
		require.NoError(t, both.ReadyAll(t.Context()))
		moves := movingKey(t, 1, 1) // in the second of two
		c.grows(old, moves)
		sealed := func(server int) {
			testkit.Await(t, "sealed", func() bool {
				n, _ := c.servers[server].Fence(fenceSet)
				return n.Marker.Nonce != "" && n.Marker.Phase == fencing.Voting
			})
		}
		call := testkit.Start(func() error { return both.ChangeFencing(t.Context()) })
		sealed(0)
		sealed(1)
		c.servers[1].Flush()
		awaitPassed(t, 2*fenceTTL)
		c.servers[0].Flush()
		awaitPassed(t, 2*fenceTTL)
		require.NoError(t, both.RecoverFencing(t.Context(), c.last[moves]))
		began := time.Now()
		require.NoError(t, testkit.Outcome(t, "ChangeFencing", call))
		require.Greater(t, time.Since(began), fenceTTL, "locks of old clients have ended")
		c.grows(next, moves)
	})
}
