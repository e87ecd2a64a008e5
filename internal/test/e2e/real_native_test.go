package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
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
	servers := realredis.StartN(t, 3, realredis.Options{Kind: realredis.Valkey9, Users: []string{cluster.AdminUser, list.user()}})
	admins := cluster.NewAdmins(t, servers)
	client := func() *redlock.Client {
		c := cluster.Connect(t, lockers(servers))
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
	requireEachIsNeeded(t, list.privileges, lockers(servers), admins)
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

// TestRealMixedFleet: one quorum of servers asked in different ways; each does its part.
func TestRealMixedFleet(t *testing.T) {
	t.Parallel()
	var servers []*realredis.Server
	for _, kind := range realredis.Kinds() {
		servers = append(servers, realredis.Start(t, realredis.Options{Kind: kind}))
	}
	newest := fakeredis.StartN(t, 1, fakeredis.Options{Flavor: fakeredis.Redis84})[0]
	nodes, admins := append(cluster.RealAddrs(servers), newest.Addr()), cluster.NewAdmins(t, servers)
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		ours, theirs := cluster.Connect(t, nodes, cluster.Portable(portable)), cluster.Connect(t, nodes, cluster.Portable(!portable))
		require.Equal(t, natively, ours.Stats().Nodes[realredis.Valkey9].Dialect)
		require.Equal(t, "DELEX, EVALSHA", ours.Stats().Nodes[3].Dialect)
		has := func(least time.Duration) func() bool {
			return func() bool {
				_, all := newest.Get("k")
				for _, a := range admins {
					left, err := strconv.Atoi(strings.TrimPrefix(a.DoWords("PTTL", "k"), ":"))
					all = all && err == nil && time.Duration(left)*time.Millisecond > least
				}
				return all
			}
		}
		for range 3 {
			l := cluster.MustAcquire(t, ours, "k", ttl)
			testkit.Await(t, "the key on all", has(0))
			_, err := theirs.TryAcquire(t.Context(), "k", ttl)
			require.Equal(t, redlock.ErrTaken, err)
			require.NoError(t, l.Extend(t.Context(), 2*ttl))
			testkit.Await(t, "the new TTL on all", has(ttl))
			require.NoError(t, l.Release(t.Context()))
			cluster.AwaitNothing(t, admins)
			testkit.Await(t, "no key on the last", func() bool { return newest.Len() == 0 })
		}

		var wg sync.WaitGroup
		for g := range 32 { // so scripts are merged
			wg.Go(func() {
				c := []*redlock.Client{ours, theirs}[g%2]
				for i := range 10 {
					if err := wholeOf(c, fmt.Sprint(g, i)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		testkit.Join(t, &wg)
		cluster.AwaitNothing(t, admins)
		testkit.Await(t, "no key on the last", func() bool { return newest.Len() == 0 })
	})
}
