package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestHeldPattern: held lists the held keys of a pattern, and nothing else, with one node down. Two of four nodes are
// enough to find a key, and too few to call it not held.
func TestHeldPattern(t *testing.T) {
	t.Parallel()
	servers := realredis.StartN(t, 4, realredis.Options{Password: "hunter2", Persistent: true})
	var nodes []string
	for _, s := range servers {
		nodes = append(nodes, "redis://:hunter2@"+s.Addr()+"?persistent=yes")
	}
	client := cluster.Connect(t, nodes, holder("worker-7"))
	cluster.AwaitNodesUp(t, client, 4)
	for i := range 300 {
		cluster.MustAcquire(t, client, fmt.Sprint("orders:", i), cluster.TTL)
	}
	cluster.MustAcquire(t, client, "redlock:other", cluster.TTL)
	cluster.MustAcquire(t, client, redlock.Permits("build", 2)[1], cluster.TTL)
	cluster.Settle(t, client)
	ask := func(pattern string) (int, string, string) {
		c := command{vars: map[string]string{patient: "10s", "REDLOCK_NODES": strings.Join(nodes, ",")}}
		status := c.run(t.Context(), "held", pattern)
		return status, c.out.String(), c.err.String()
	}
	require.NoError(t, servers[0].Kill())
	status, out, errs := ask("orders:*")
	require.Equal(t, exitOK, status, errs)
	require.Equal(t, 300, strings.Count(out, "worker-7"))
	require.NotContains(t, out, "other")
	status, out, _ = ask("*lock:*")
	require.Equal(t, exitOK, status)
	require.Equal(t, 1, strings.Count(out, "\n"), out)
	status, out, _ = ask("bui*")
	require.Equal(t, exitOK, status)
	require.Regexp(t, `^build .* permit 2\n$`, out)
	status, _, _ = ask("none:*")
	require.Equal(t, exitFailed, status)
	require.NoError(t, servers[1].Kill())
	status, out, errs = ask("orders:*")
	require.Equal(t, exitNoQuorum, status)
	require.NotContains(t, out+errs, "hunter2")
}
