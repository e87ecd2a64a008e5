package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// changing is clients in a change of fenced nodes 0, 1, 2, of which 2 is replaced by 3.
type changing struct {
	*testing.T
	servers []*fakeredis.Server
	last    map[string]uint64 // token of each key
}

var replaced = []int{0, 1, 3}

func (c *changing) client(from, to []int, off time.Duration) *redlock.Client {
	return cluster.Connect(c.T, nil, fromTo(c.servers, from, to), fenced(off), cluster.NodeTimeout(100*time.Millisecond))
}

// grows locks a key: its token is larger than the one before.
func (c *changing) grows(client *redlock.Client, key string) {
	c.Helper()
	l, err := client.Acquire(c.Context(), key, fenceTTL)
	require.NoError(c, err)
	require.Greater(c, l.Fence(), c.last[key])
	c.last[key] = l.Fence()
	require.NoError(c, l.Release(c.Context()))
}

// awaitVote waits for the vote of a server, while clients do something.
func (c *changing) awaitVote(server int, do func()) {
	c.Helper()
	testkit.Await(c.T, "its vote", func() bool {
		do()
		n, _ := c.servers[server].Fence("redlock:fence")
		return n.Marker.Phase == fencing.Voting
	})
}

func (c *changing) refused(client *redlock.Client, text string) {
	c.Helper()
	_, err := client.TryAcquire(c.Context(), "k", fenceTTL)
	require.ErrorIs(c, err, redlock.ErrConfig)
	require.ErrorContains(c, err, text)
}

func changes(t *testing.T, f func(c *changing)) {
	cluster.Virtually(t, func(t *testing.T) {
		c := &changing{t, cluster.Start(t, 4), map[string]uint64{}}
		require.NoError(t, c.client(three, nil, 0).InitFencing(t.Context(), 0))
		f(c)
	})
}

// TestFencedNextNodes: a node of fenced clients is replaced while they run. Tokens grow from step
// to step, also of a key that is not locked during step 1, by a clock that is an hour ahead. Clients
// of steps 0 and 2 are not served beside each other, and learn what is to be done.
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
		next := c.client(replaced, nil, 0)
		c.refused(next, "InitFencing of a client with both, in Nodes and NextNodes, has to return before")
		require.ErrorContains(c, cluster.IsReady(next), "configured otherwise")

		held := cluster.MustAcquire(c.T, old, "held", fenceTTL)
		c.last["held"] = held.Fence()
		began := time.Now()
		call := testkit.Start(func() error { return both.InitFencing(c.Context(), 0) })
		testkit.Await(c.T, "that old clients are refused", func() bool {
			l, err := old.TryAcquire(c.Context(), "k", fenceTTL)
			if err == nil {
				require.NoError(c, l.Release(c.Context()))
			}
			return err != nil
		})
		c.refused(old, "a client with the old one alone is too late")
		require.ErrorIs(c, held.Extend(c.Context(), fenceTTL), redlock.ErrNoQuorum)
		c.grows(both, "k")
		require.NoError(c, testkit.Outcome(c.T, "InitFencing", call))
		require.Greater(c, time.Since(began), fenceTTL, "locks of old clients have ended")

		require.NoError(c, next.Ready(c.Context()))
		for _, key := range []string{"idle", "k", "held"} {
			c.grows(next, key)
			c.grows(both, key)
		}
		c.refused(old, "")
		began = time.Now()
		require.NoError(c, both.InitFencing(c.Context(), 0), "once more")
		require.Less(c, time.Since(began), fenceTTL, "there is nothing to do")
		c.grows(next, "k")
	})
}

// TestFencedChangeIsTakenBack: before the call clients just leave step 1. After it they go back by
// a change the other way.
func TestFencedChangeIsTakenBack(t *testing.T) {
	changes(t, func(c *changing) {
		old := c.client(three, nil, 0)
		both := c.client(three, replaced, 0)
		require.NoError(c, both.Ready(c.Context()))
		c.grows(both, "k")
		require.NoError(c, both.Close())
		c.grows(old, "k")

		require.NoError(c, c.client(three, replaced, 0).InitFencing(c.Context(), 0))
		next := c.client(replaced, nil, time.Hour)
		c.grows(next, "k")
		c.refused(old, "configured otherwise")

		back := c.client(replaced, three, 0)
		c.grows(back, "k")
		require.NoError(c, back.InitFencing(c.Context(), 0))
		require.NoError(c, old.Ready(c.Context()))
		c.grows(old, "k")
		c.refused(next, "")
	})
}

// TestFencedChangeWithFaults: the node that is replaced is dead, another one forgets during the
// call, which is made again after its first operator has left.
func TestFencedChangeWithFaults(t *testing.T) {
	changes(t, func(c *changing) {
		old := c.client(three, nil, time.Hour)
		c.grows(old, "idle")
		c.servers[2].Down()
		both := c.client(three, replaced, 0)
		ctx, cancel := context.WithTimeout(c.Context(), fenceTTL*3/2)
		defer cancel()
		require.ErrorIs(c, both.InitFencing(ctx, 0), context.DeadlineExceeded)
		c.grows(both, "k")
		call := testkit.Start(func() error { return both.InitFencing(c.Context(), 0) })
		c.servers[3].Flush()
		require.NoError(c, testkit.Outcome(c.T, "InitFencing", call))
		next := c.client(replaced, nil, 0)
		require.NoError(c, next.Ready(c.Context()))
		c.grows(next, "idle")
		c.servers[0].Flush()
		c.awaitVote(0, func() {
			c.grows(next, "k")
			c.grows(both, "k")
		})
	})
}
