package e2e

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestConfigDefaults: a Config needs nothing but nodes, and a Retry.Min above
// the default of its Max is no mistake.
func TestConfigDefaults(t *testing.T) {
	servers := fakeredis.StartN(t, 3)
	nodes := fakeredis.Addrs(servers)
	for _, cfg := range []redlock.Config{{Nodes: nodes}, {Nodes: nodes, Retry: redlock.Retry{Min: time.Second}}} {
		c, err := redlock.New(cfg)
		require.NoError(t, err)
		l, err := c.Acquire(t.Context(), "k", 10*time.Second)
		require.NoError(t, err)
		require.Greater(t, l.Remaining(), time.Second)
		require.NoError(t, c.Close())
		servers.Flush()
	}
}

// TestNodeTimeoutDefault: unless it is set, it follows from the TTL.
func TestNodeTimeoutDefault(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 1, cluster.NodeTimeout(0))
		r.Servers[0].Hang()
		for given, want := range map[time.Duration]time.Duration{
			10 * time.Second:       50 * time.Millisecond, // of 500
			400 * time.Millisecond: 20 * time.Millisecond,
		} {
			start := time.Now()
			_, err := r.TryAcquire(t.Context(), "k", given)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.GreaterOrEqual(t, time.Since(start), want)
		}
	})
}

// TestLongestNodeTimeout: the longest possible durations mean to wait.
func TestLongestNodeTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{math.MaxInt64, math.MaxInt64 / 2} {
		cluster.Virtually(t, func(t *testing.T) {
			r := cluster.New(t, 3, cluster.NodeTimeout(timeout))
			r.Servers.Delay(30 * time.Millisecond)
			live(t, r.Client, "k")
		})
	}
}

// TestEvenNumberIsWarnedAbout, and only an even number.
func TestEvenNumberIsWarnedAbout(t *testing.T) {
	for n := 1; n <= 6; n++ {
		var log bytes.Buffer
		c, err := redlock.New(redlock.Config{
			Nodes:       fakeredis.Addrs(fakeredis.StartN(t, n)),
			NodeTimeout: testkit.Patience,
			DialTimeout: testkit.Patience,
			Logger:      slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		require.NoError(t, err)
		require.NoError(t, cluster.MustAcquire(t, c, "k", ttl).Release(t.Context()), "it works all the same")
		require.NoError(t, c.Close())
		if n%2 == 1 {
			require.Empty(t, log.String())
			continue
		}
		require.Contains(t, log.String(), "level=WARN")
		require.Contains(t, log.String(), fmt.Sprintf("nodes=%d quorum=%d", n, n/2+1))
		require.Equal(t, 1, strings.Count(log.String(), "\n"))
	}
}

// TestSameServerIsRefused: two addresses of one server are found out by its run_id.
func TestSameServerIsRefused(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		servers := fakeredis.StartN(t, 3, fakeredis.Options{Password: "sesame"})
		_, port, err := net.SplitHostPort(servers[1].Addr())
		require.NoError(t, err)
		alias := "localhost:" + port
		var nodes []string
		for _, addr := range append(fakeredis.Addrs(servers), alias) {
			nodes = append(nodes, "redis://:sesame@"+addr)
		}
		c, err := redlock.New(redlock.Config{Nodes: nodes, Portable: portable, DialTimeout: testkit.Patience})
		require.Nil(t, c)
		require.ErrorIs(t, err, conn.ErrSameServer)
		require.ErrorContains(t, err, "same server as another node")
		_, err = redlock.New(redlock.Config{Groups: [][]string{nodes[:3], nodes[3:]}, Portable: portable, DialTimeout: testkit.Patience})
		require.ErrorIs(t, err, conn.ErrSameServer, "a server in two groups")
		// The later of the two is refused, and names the first.
		require.Contains(t, err.Error(), servers[1].Addr())
		require.Contains(t, err.Error(), alias)
		require.NotContains(t, err.Error(), "sesame")
		for _, s := range servers {
			testkit.Await(t, "the refused client is gone", func() bool { return s.Conns() == 0 })
		}
	})
}

// TestNewIsBoundByDialTimeout: a node that is down, or hangs, is no error, and is there once it
// answers.
func TestNewIsBoundByDialTimeout(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		servers := cluster.Start(t, 3)
		servers[0].Down()
		servers[1].Hang()
		r := cluster.Of(t, servers, func(c *redlock.Config) { c.DialTimeout = 100 * time.Millisecond })
		_, err := r.TryAcquire(t.Context(), "k", ttl)
		require.ErrorIs(t, err, redlock.ErrNoQuorum)
		r.Heal(t)
		r.AwaitUp(t)
	})
}

// TestConfigErrors: each names the field or the node, and shows no password. Addresses alone are
// tested in package fleet.
func TestConfigErrors(t *testing.T) {
	nodes := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("redis://:sesame@10.0.0.1:%d", 7000+i))
		}
		return list
	}
	with := func(set func(c *redlock.Config)) redlock.Config {
		c := redlock.Config{Nodes: nodes(1)}
		set(&c)
		return c
	}
	for want, cfg := range map[string]redlock.Config{
		"0 nodes, want 1 to 64":                                                      {},
		"65 nodes, want 1 to 64":                                                     {Nodes: nodes(65)},
		"node 1: address is neither":                                                 {Nodes: []string{"10.0.0.1", "me:sesame@10.0.0.2:6379", "10.0.0.3"}},
		"nodes 1 and 2 are both 10.0.0.3:6379":                                       {Nodes: []string{"10.0.0.1", "redis://me:sesame@10.0.0.3", "10.0.0.3"}},
		"NodeTimeout is -1ns, want 0":                                                with(func(c *redlock.Config) { c.NodeTimeout = -1 }),
		"DialTimeout is -1ns, want 0":                                                with(func(c *redlock.Config) { c.DialTimeout = -1 }),
		"StallTimeout is -1ns, want 0":                                               with(func(c *redlock.Config) { c.StallTimeout = -1 }),
		"MaxWaiting is -1, want 0":                                                   with(func(c *redlock.Config) { c.MaxWaiting = -1 }),
		"Retry.Min is -1ns, want 0":                                                  with(func(c *redlock.Config) { c.Retry.Min = -1 }),
		"Retry.Max is -1ns, want 0":                                                  with(func(c *redlock.Config) { c.Retry.Max = -1 }),
		"Retry.Attempts is -1, want 0":                                               with(func(c *redlock.Config) { c.Retry.Attempts = -1 }),
		"at most 8760h0m0s are allowed":                                              with(func(c *redlock.Config) { c.Retry.Min = math.MaxInt64 }),
		"Retry.Min 2ns is above Retry.Max 1ns":                                       with(func(c *redlock.Config) { c.Retry = redlock.Retry{Min: 2, Max: 1, Attempts: 3} }),
		"asks the nodes without a pause and without end":                             with(func(c *redlock.Config) { c.Retry.Max = time.Microsecond }),
		"both Nodes and Groups are set: set Nodes for":                               with(func(c *redlock.Config) { c.Groups = [][]string{nodes(3)} }),
		"NextMaxTTL is set, and Fenced is not: set MaxTTL itself":                    with(func(c *redlock.Config) { c.NextMaxTTL = time.Second }),
		"both MaxTTL and NextMaxTTL are 1s: leave NextMaxTTL out":                    with(func(c *redlock.Config) { c.Fenced, c.MaxTTL, c.NextMaxTTL = true, time.Second, time.Second }),
		"NextMaxTTL is 1ms, want 0 (no change) or 10ms to":                           with(func(c *redlock.Config) { c.Fenced, c.MaxTTL, c.NextMaxTTL = true, time.Second, time.Millisecond }),
		"both NextNodes and Groups are set":                                          {NextNodes: nodes(3), Groups: [][]string{nodes(3)}},
		"65 Groups, at most 64":                                                      {Groups: make([][]string, 65)},
		"Groups[1]: no nodes: remove the group":                                      {Groups: [][]string{nodes(3), {}}},
		"Groups[1]: 65 nodes, want 1 to 64":                                          {Groups: [][]string{{"10.0.0.2"}, nodes(65)}},
		"Groups[1]: node 1: address is neither":                                      {Groups: [][]string{nodes(3), {"10.0.0.2", "me:sesame@10.0.0.2:6379"}}},
		"both Groups[0] and Groups[1] have the node 10.0.0.1:7000: each group needs": {Groups: [][]string{nodes(3), {"10.0.0.2", "10.0.0.1:7000"}}},
	} {
		client, err := redlock.New(cfg)
		require.Nil(t, client)
		require.ErrorIs(t, err, redlock.ErrConfig)
		require.ErrorContains(t, err, want)
		require.True(t, strings.HasPrefix(err.Error(), "redlock: config: "), "%v", err)
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", err, err, err), "sesame")
		require.NotContains(t, fmt.Sprintf("%v %+v %#v", cfg, cfg, cfg), "sesame")
	}
}
