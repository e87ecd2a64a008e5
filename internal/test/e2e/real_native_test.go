package e2e

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// natively is the form for Valkey 9.
const natively = "DELIFEQ, EVALSHA"

// lockers are the addresses of servers, as the user of the clients.
func lockers(servers []*realredis.Server) (nodes []string) {
	for _, s := range servers {
		nodes = append(nodes, "redis://"+lockerLogin+s.Addr())
	}
	return nodes
}

// TestRealNativePrivileges: a server with a native release command releases by it, with no more
// than the documented permissions.
func TestRealNativePrivileges(t *testing.T) {
	t.Parallel()
	list := documented("Valkey 9:")
	admins, nodes := list.servers(t, realredis.Valkey9)
	client := func() *redlock.Client {
		c := cluster.Connect(t, nodes)
		for _, n := range c.Stats().Nodes {
			require.NoError(t, n.Err)
			require.Equal(t, natively, n.Dialect)
			require.Contains(t, n.Server, "valkey 9")
		}
		return c
	}
	require.NoError(t, wholeLife(t, client(), client(), admins))
	cluster.AwaitNothing(t, admins)
	for _, a := range admins {
		calls := a.Text("INFO commandstats")
		require.Regexp(t, `cmdstat_delifeq:calls=[1-9]`, calls)
	}
	requireEachIsNeeded(t, list.privileges, nodes, admins)
}

// wholeOf acquires, extends and releases a key.
func wholeOf(c *redlock.Client, key string) error {
	l, err := c.TryAcquire(context.Background(), key, ttl)
	if err != nil {
		return err
	}
	if err := l.Extend(context.Background(), ttl); err != nil {
		return err
	}
	return l.Release(context.Background())
}
