package e2e

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/fencenode"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// changing is clients in a change of fenced nodes 0, 1, 2; 3 replaces 2.
type changing struct {
	*testing.T
	servers fakeredis.Servers
	last    map[string]uint64 // token of each key
}

var replaced = []int{0, 1, 3}

func startChanging(t *testing.T, servers int) *changing {
	return &changing{t, cluster.Start(t, servers), map[string]uint64{}}
}

func (c *changing) client(from, to []int, off time.Duration) *redlock.Client {
	return c.connect(fromTo(c.servers, from, to), fenced(off))
}

// ofGroups is a client that changes from so many groups to so many; see groupsFromTo.
func (c *changing) ofGroups(now, next int, off time.Duration) *redlock.Client {
	return c.connect(groupsFromTo(c.servers, now, next), fenced(off))
}

func (c *changing) connect(change ...func(*redlock.Config)) *redlock.Client {
	return cluster.Connect(c.T, nil, append(change, cluster.NodeTimeout(100*time.Millisecond))...)
}

// marker is that of a server.
func (c *changing) marker(server int) fencing.Marker {
	n, _ := c.servers[server].Fence(fenceSet)
	return n.Marker
}

// grows locks a key: its token is larger than the one before.
func (c *changing) grows(client *redlock.Client, key string) {
	c.Helper()
	l := testkit.Must(client.Acquire(c.Context(), key, fenceTTL))(c)
	require.Greater(c, l.Fence(), c.last[key])
	c.last[key] = l.Fence()
	require.NoError(c, l.Release(c.Context()))
}

// awaitVote waits for the vote of a server, while clients do something.
func (c *changing) awaitVote(server int, do func()) {
	c.Helper()
	testkit.Await(c.T, "its vote", func() bool {
		do()
		return c.marker(server).Phase == fencing.Voting
	})
}

func (c *changing) refused(client *redlock.Client, text string) {
	c.Helper()
	_, err := client.TryAcquire(c.Context(), "k", fenceTTL)
	require.ErrorIs(c, err, redlock.ErrConfig)
	require.ErrorContains(c, err, text)
}

// serves waits until a client shows which clients its nodes serve.
func (c *changing) serves(client *redlock.Client, want ...string) {
	c.Helper()
	testkit.Await(c.T, fmt.Sprint("they serve ", want), func() bool {
		var got []string
		for _, n := range client.Stats().Nodes {
			got = append(got, n.Serves)
		}
		return slices.Equal(got, want)
	})
}

func changes(t *testing.T, f func(c *changing)) {
	cluster.Virtually(t, func(t *testing.T) {
		c := startChanging(t, 4)
		require.NoError(t, c.client(three, nil, 0).InitFencing(t.Context()))
		f(c)
	})
}

// TestCrowdsInAChange: a node without a vote answers a call of many keys once. So its connection, where an answer has
// a bound, survives 512 callers, and it has its vote in time. A client of step 0 with a large set hears the reason.
func TestCrowdsInAChange(t *testing.T) {
	changes(t, func(c *changing) {
		old, both := c.client(three, nil, 0), c.client(three, replaced, 0)
		began, ended := time.Now(), make(chan struct{})
		var callers sync.WaitGroup
		for i := range 512 {
			callers.Go(func() {
				for !testkit.IsClosed(ended) {
					l, err := both.Acquire(c.Context(), fmt.Sprint("key", i), fenceTTL)
					require.NoError(c, err)
					require.NoError(c, l.Release(c.Context()))
					time.Sleep(20 * time.Millisecond)
				}
			})
		}
		c.awaitVote(3, func() { time.Sleep(10 * time.Millisecond) })
		require.Less(c, time.Since(began), fenceTTL+time.Second)
		close(ended)
		testkit.Join(c.T, &callers)
		for _, n := range both.Stats().Nodes {
			require.Equal(c, uint64(1), n.Connects, n.Addr)
		}

		require.NoError(c, both.ChangeFencing(c.Context()))
		var keys []string
		for i := range 64 {
			keys = append(keys, fmt.Sprint("of a set ", i))
		}
		_, err := old.TryAcquireAll(c.Context(), fenceTTL, keys...)
		require.ErrorIs(c, err, redlock.ErrConfig)
		require.ErrorContains(c, err, "too late")
	})
}

// TestFencedNextNodes: a node of fenced clients is replaced while they run. Tokens grow from step
// to step, also of a key not locked during step 1, by a clock an hour ahead. Clients of steps 0 and
// 2 are not served beside each other, and learn what to do.
func TestFencedNextNodes(t *testing.T) {
	changes(t, func(c *changing) {
		old, ahead := c.client(three, nil, 0), c.client(three, nil, time.Hour)
		c.grows(old, "k")
		c.grows(ahead, "idle")

		both := c.client(three, replaced, 0)
		require.NoError(c, both.Ready(c.Context()))
		c.awaitVote(3, func() {
			c.grows(both, "k")
			c.grows(old, "k")
		})
		c.serves(old, "now", "now", "now")
		c.serves(both, "now", "now", "now", "now")
		next := c.client(replaced, nil, 0)
		c.refused(next, "ChangeFencing of a client with both, in Nodes and NextNodes, has to return before")
		require.ErrorContains(c, cluster.IsReady(next), "another configuration")

		held := cluster.MustAcquire(c.T, old, "held", fenceTTL)
		c.last["held"] = held.Fence()
		began := time.Now()
		call := testkit.Start(func() error { return both.ChangeFencing(c.Context()) })
		testkit.Await(c.T, "that old clients are refused", func() bool {
			l, err := old.TryAcquire(c.Context(), "k", fenceTTL)
			if err == nil {
				require.NoError(c, l.Release(c.Context()))
			}
			return err != nil
		})
		c.refused(old, "a client with the old one alone is too late")
		testkit.Await(c.T, "names of both", func() bool {
			return strings.Contains(next.Stats().Nodes[0].Serves, "+now") && strings.HasPrefix(old.Stats().Nodes[0].Serves, "now+nodes-")
		})
		require.ErrorIs(c, held.Extend(c.Context(), fenceTTL), redlock.ErrNoQuorum)
		c.grows(both, "k")
		require.NoError(c, testkit.Outcome(c.T, "ChangeFencing", call))
		require.Greater(c, time.Since(began), fenceTTL, "locks of old clients have ended")

		require.NoError(c, next.Ready(c.Context()))
		c.serves(next, "now", "now", "now")
		c.serves(both, "next", "next", "now+next", "next")
		for _, key := range []string{"idle", "k", "held"} {
			c.grows(next, key)
			c.grows(both, key)
		}
		c.refused(old, "")
		began = time.Now()
		require.NoError(c, both.ChangeFencing(c.Context()), "once more")
		require.Less(c, time.Since(began), fenceTTL, "there is nothing to do")
		c.grows(next, "k")
	})
}

// TestFencedMaxTTLChanges: the longest TTL of fenced clients becomes longer, or shorter, while they run. While both are
// named a lock has the shorter one at most, and a forgetful node has no vote for the longer one.
func TestFencedMaxTTLChanges(t *testing.T) {
	for name, ttls := range map[string][2]time.Duration{"longer": {fenceTTL, 3 * fenceTTL}, "shorter": {3 * fenceTTL, fenceTTL}} {
		cluster.Run(t, name, func(t *testing.T) {
			c := startChanging(t, 3)
			client := func(now, next, off time.Duration) *redlock.Client {
				return c.connect(fromTo(c.servers, three, nil), fenced(off), func(c *redlock.Config) { c.MaxTTL, c.NextMaxTTL = now, next })
			}
			old := client(ttls[0], 0, time.Hour)
			require.NoError(t, old.InitFencing(t.Context()))
			c.grows(old, "idle")
			c.grows(old, "k")
			both, next := client(ttls[0], ttls[1], 0), client(ttls[1], 0, 0)
			c.grows(both, "k")
			c.grows(old, "k")
			c.refused(next, "all clients must have the same Nodes, or Groups, and MaxTTL")
			err := next.InitFencing(t.Context())
			require.ErrorIs(t, err, redlock.ErrConfig)
			require.Regexp(t, fmt.Sprintf(`:\d+ have "(nodes-[0-9a-f]+,quorum-2-of-3,MaxTTL-)%v", this client has nodes-[0-9a-f]+,quorum-2-of-3,MaxTTL-%v\)`, ttls[0], ttls[1]), err.Error())
			require.ErrorIs(t, c.connect(fromTo(c.servers, three, nil)).InitFencing(t.Context()), redlock.ErrConfig, "it is not fenced")
			require.ErrorIs(t, errorOf(both.TryAcquire(t.Context(), "k", 2*fenceTTL)), redlock.ErrArgument)

			require.NoError(t, old.Close())
			began := time.Now()
			c.servers[2].Flush()
			c.awaitVote(2, func() { c.grows(both, "k") })
			require.Greater(t, time.Since(began), 3*fenceTTL)
			began = time.Now()
			require.NoError(t, both.ChangeFencing(t.Context()))
			require.Greater(t, time.Since(began), 3*fenceTTL, "locks of either TTL have ended")
			c.serves(both, "next", "next", "next")
			require.NoError(t, next.Ready(t.Context()))
			c.grows(next, "idle")
			c.grows(next, "k")
			c.grows(both, "k")
			l := testkit.Must(next.TryAcquire(t.Context(), "k", ttls[1]))(t)
			c.last["k"] = l.Fence()
			require.NoError(t, l.Release(t.Context()))
			c.refused(client(ttls[0], 0, 0), "all clients must have the same Nodes, or Groups, and MaxTTL")

			back := client(ttls[1], ttls[0], 0)
			c.grows(back, "k")
			require.NoError(t, back.ChangeFencing(t.Context()))
			c.grows(client(ttls[0], 0, 0), "k")
		})
	}
}

// TestFencedGroupsChangeTogether: no group serves clients of the next groups before all refuse
// those of the present ones, and all learn when one cannot come so far.
func TestFencedGroupsChangeTogether(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		c := startChanging(t, 9)
		old := c.ofGroups(2, 0, 0)
		require.NoError(t, old.InitFencing(t.Context()))
		both, next := c.ofGroups(2, 3, 0), c.ofGroups(3, 0, 0)
		require.NoError(t, both.InitFencing(t.Context()))
		moves := movingKey(t, 0, 2)
		c.grows(c.ofGroups(2, 0, time.Hour), moves)
		call := testkit.Start(func() error { return both.ChangeFencing(t.Context()) })
		awaitSealed := func(server int) {
			testkit.Await(t, "sealed", func() bool { return c.marker(server).Nonce != "" })
		}
		awaitSealed(8)
		c.servers[:2].Down()
		time.Sleep(5 * fenceTTL)
		for _, key := range []string{movingKey(t, 1, 1), movingKey(t, 1, 2), moves} {
			require.ErrorIs(t, errorOf(next.TryAcquire(t.Context(), key, fenceTTL)), redlock.ErrConfig, key)
		}
		require.NoError(t, c.servers[:2].Heal())
		var sealed []fencenode.Node // of the new group
		for _, s := range c.servers[6:] {
			n, _ := s.Fence(fenceSet)
			sealed = append(sealed, n)
		}
		require.NoError(t, testkit.Outcome(t, "ChangeFencing", call))
		for i, s := range c.servers[6:] { // as if the call had not come to it
			s.SetFence(fenceSet, sealed[i])
		}
		require.ErrorIs(t, errorOf(next.TryAcquire(t.Context(), moves, fenceTTL)), redlock.ErrConfig)
		require.NoError(t, both.ChangeFencing(t.Context()))
		c.grows(next, moves)

		back := c.ofGroups(3, 2, 0)
		call = testkit.Start(func() error { return back.ChangeFencing(t.Context()) })
		awaitSealed(8)
		n, _ := c.servers[0].Fence(fenceSet)
		n.Marker.Me.Fleet = "another"
		c.servers[0].SetFence(fenceSet, n)
		err := testkit.Outcome(t, "ChangeFencing", call)
		require.ErrorIs(t, err, redlock.ErrConfig)
		require.ErrorContains(t, err, "Groups[0]: nodes hold")
	})
}
