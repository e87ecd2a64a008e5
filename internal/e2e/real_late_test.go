package e2e

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// TestRealLateNode: two processes contend for a lock, and the answers of one node come late.
// Whichever it is, also that with the queue, they have at least half of the grants that they
// have otherwise.
func TestRealLateNode(t *testing.T) {
	window, delays := 400*time.Millisecond, []time.Duration{10 * time.Millisecond}
	if testkit.Long() {
		window, delays = 3*time.Second, append(delays, 45*time.Millisecond)
	}
	servers := realredis.StartN(t, 5)
	admins, nodes := cluster.NewAdmins(t, servers), cluster.RealAddrs(servers)
	grants := func(late string, by time.Duration) (n int64) {
		for _, a := range admins {
			a.Must("FLUSHALL")
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range 2 {
			net := newNetwork()
			net.late[late] = by
			c := cluster.Connect(t, nodes, usual, net.use)
			defer func() { assert.NoError(t, c.Close()) }()
			u, ended := line(ctx, c, "k", 2, time.Millisecond) // one key, with one order of the nodes
			defer func() {
				testkit.Join(t, ended)
				n += u.grants.Load()
			}()
		}
		awaitPassed(t, window)
		cancel()
		return n
	}
	for _, by := range delays {
		var healthy, each []int64
		for _, late := range nodes { // in turn, since the machine has other work too
			healthy = append(healthy, grants("", 0))
			each = append(each, grants(late, by))
		}
		slices.Sort(healthy)
		share := float64(slices.Min(each)) / float64(healthy[len(healthy)/2])
		t.Logf("%v late: grants %d in %v, healthy %d; share %.2f at the worst node", by, each, window, healthy, share)
		assert.GreaterOrEqual(t, share, 0.5)
	}
}
