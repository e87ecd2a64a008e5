package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// TestRealRollingRestart: no lock that is kept alive is lost where all servers are restarted
// empty, each when the one before it votes again.
func TestRealRollingRestart(t *testing.T) {
	t.Parallel()
	n, ttl := 3, 3*time.Second
	if testkit.Long() {
		n = 5
	}
	const locks = 50
	servers := realredis.StartN(t, n)
	c := cluster.Connect(t, cluster.RealAddrs(servers), cluster.DefaultTimeouts, func(c *redlock.Config) { c.MaxTTL = ttl })
	testkit.Await(t, "all votes", func() bool { return c.Ready(t.Context()) == nil && guarded(c) == 0 })
	for i := range locks {
		require.NoError(t, cluster.Keep(cluster.MustAcquire(t, c, fmt.Sprint("k", i), ttl), nil))
	}
	for i := range servers {
		restartUnder(t, servers, i, c)
		testkit.Await(t, "its vote", func() bool { return guarded(c) == 0 })
		s := cluster.Stats(t, c)
		t.Logf("%d of %d restarted: %d locks lost", i+1, n, s.Lost)
	}
	s := cluster.Stats(t, c)
	require.Zero(t, s.Lost)
	require.Equal(t, locks, s.KeptAlive)
}

// guarded is how many nodes of a client are up without a vote, or down.
func guarded(c *redlock.Client) (n int) {
	for _, node := range c.Stats().Nodes {
		if !node.Up || node.Guarded > 0 {
			n++
		}
	}
	return n
}
