package e2e

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestRightConfigs: a Config needs nothing but nodes, a Retry.Min above the default of its Max is no mistake, and the longest
// possible durations mean to wait.
func TestRightConfigs(t *testing.T) {
	for name, c := range map[string]redlock.Config{
		"nodes": {}, "a pause": {Retry: redlock.Retry{Min: time.Second}},
		"for ever":     {NodeTimeout: math.MaxInt64, DialTimeout: math.MaxInt64, StallTimeout: math.MaxInt64},
		"half as long": {NodeTimeout: math.MaxInt64 / 2, DialTimeout: math.MaxInt64 / 2, StallTimeout: math.MaxInt64 / 2},
	} {
		cluster.Run(t, name, func(t *testing.T) {
			servers := cluster.Start(t, 3)
			servers.Delay(30 * time.Millisecond)
			live(t, cluster.Connect(t, nil, func(cfg *redlock.Config) { *cfg, cfg.Nodes = c, fakeredis.Addrs(servers) }), "k")
		})
	}
}

// TestEvenNumberIsWarnedAbout, and only an even number, in either list.
func TestEvenNumberIsWarnedAbout(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		nodes := fakeredis.Addrs(cluster.Start(t, 6))
		for _, n := range []struct{ nodes, next, even int }{{1, 0, 0}, {2, 0, 2}, {3, 0, 0}, {4, 0, 4}, {5, 0, 0}, {6, 0, 6}, {3, 2, 2}} {
			var log testkit.LogSink
			c := cluster.Connect(t, nodes[:n.nodes], func(c *redlock.Config) { c.NextNodes, c.Logger = nodes[:n.next], log.Logger(slog.LevelWarn) })
			require.NoError(t, cluster.MustAcquire(t, c, "k", ttl).Release(t.Context()), "it works all the same")
			require.NoError(t, c.Close())
			if n.even == 0 {
				require.Empty(t, log.String())
				continue
			}
			require.Equal(t, 1, strings.Count(log.String(), fmt.Sprintf("nodes=%d quorum=%d", n.even, n.even/2+1)))
			require.Equal(t, 1, strings.Count(log.String(), "\n"))
		}
	})
}

// manyNodes are n nodes of one host, from a port on.
func manyNodes(from, n int) (nodes []string) {
	for i := range n {
		nodes = append(nodes, fmt.Sprintf("redis://:sesame@10.0.0.1:%d", from+i))
	}
	return nodes
}

// hosts are groups of one node each.
func hosts(all ...string) (groups [][]string) {
	for _, host := range all {
		groups = append(groups, []string{"redis://:sesame@" + host})
	}
	return groups
}

// wrongConfigs are refused configurations, by a part of the error: the fault, and what to do.
var wrongConfigs = []struct {
	want string
	cfg  redlock.Config
}{
	{"0 nodes, want 1 to 64", redlock.Config{}},
	{"65 nodes, want 1 to 64", redlock.Config{Nodes: manyNodes(1, 65)}},
	{"node 1: address must be", redlock.Config{Nodes: []string{"10.0.0.1", "me:sesame@10.0.0.2:6379", "10.0.0.3"}}},
	{"nodes 1 and 2 are both 10.0.0.3:6379", redlock.Config{Nodes: []string{"10.0.0.1", "redis://me:sesame@10.0.0.3", "10.0.0.3"}}},
	{"NodeTimeout is -1ns, want 0", redlock.Config{Nodes: manyNodes(1, 1), NodeTimeout: -1}},
	{"NodeTimeout is 999µs, want 0 (the default) or at least 1ms", redlock.Config{Nodes: manyNodes(1, 1), NodeTimeout: 999 * time.Microsecond}},
	{"DialTimeout is -1ns, want 0", redlock.Config{Nodes: manyNodes(1, 1), DialTimeout: -1}},
	{"StallTimeout is -1ns, want 0", redlock.Config{Nodes: manyNodes(1, 1), StallTimeout: -1}},
	{"MaxWaiting is -1, want 0", redlock.Config{Nodes: manyNodes(1, 1), MaxWaiting: -1}},
	{"Retry.Min is -1ns, want 0", redlock.Config{Nodes: manyNodes(1, 1), Retry: redlock.Retry{Min: -1}}},
	{"Retry.Max is -1ns, want 0", redlock.Config{Nodes: manyNodes(1, 1), Retry: redlock.Retry{Max: -1}}},
	{"Retry.Attempts is -1, want 0", redlock.Config{Nodes: manyNodes(1, 1), Retry: redlock.Retry{Attempts: -1}}},
	{"at most 8760h0m0s are allowed", redlock.Config{Nodes: manyNodes(1, 1), Retry: redlock.Retry{Min: math.MaxInt64}}},
	{"Retry.Min 2ns is above Retry.Max 1ns", redlock.Config{Nodes: manyNodes(1, 1), Retry: redlock.Retry{Min: 2, Max: 1, Attempts: 3}}},
	{"asks the nodes without a pause and without end", redlock.Config{Nodes: manyNodes(1, 1), Retry: redlock.Retry{Max: time.Microsecond}}},
	{"NextMaxTTL is set, and Fenced is not: set MaxTTL itself", redlock.Config{Nodes: manyNodes(1, 1), NextMaxTTL: time.Second}},
	{"both MaxTTL and NextMaxTTL are 1s: leave NextMaxTTL out", redlock.Config{Nodes: manyNodes(1, 1), Fenced: true, MaxTTL: time.Second, NextMaxTTL: time.Second}},
	{"NextMaxTTL is 1ms, want 0 (no change) or 10ms to", redlock.Config{Nodes: manyNodes(1, 1), Fenced: true, MaxTTL: time.Second, NextMaxTTL: time.Millisecond}},
	{"MaxTTL", redlock.Config{Nodes: manyNodes(1, 1), Fenced: true}},
	{"Name", redlock.Config{Nodes: manyNodes(1, 1), Name: "a\nb"}},
	{"Name", redlock.Config{Nodes: manyNodes(1, 1), Name: strings.Repeat("x", 129)}},

	{"both Nodes and Groups are set: set Nodes for", redlock.Config{Nodes: manyNodes(1, 1), Groups: hosts("a")}},
	{"65 Groups, at most 64", redlock.Config{Groups: make([][]string, 65)}},
	{"Groups[1]: no nodes: remove the group", redlock.Config{Groups: [][]string{manyNodes(1, 3), {}}}},
	{"Groups[1]: 65 nodes, want 1 to 64", redlock.Config{Groups: [][]string{{"10.0.0.2"}, manyNodes(1, 65)}}},
	{"Groups[1]: node 1: address must be", redlock.Config{Groups: [][]string{manyNodes(1, 3), {"10.0.0.2", "me:sesame@10.0.0.2:6379"}}}},
	{"both Groups[0] and Groups[1] have the node 10.0.0.1:1: each group needs", redlock.Config{Groups: [][]string{manyNodes(1, 3), {"10.0.0.2", "10.0.0.1:1"}}}},

	{"NextNodes has the same nodes as Nodes: leave it empty unless the nodes change", redlock.Config{Nodes: []string{"10.0.0.1", "10.0.0.2:6379"}, NextNodes: []string{"redis://10.0.0.2", "10.0.0.1:6379"}}},
	{"NextNodes: nodes 1 and 2 are both 10.0.0.3:6379: a node must not vote twice", redlock.Config{Nodes: manyNodes(1, 1), NextNodes: []string{"10.0.0.1", "10.0.0.3", "redis://10.0.0.3"}}},
	{"NextNodes: node 1: address must be", redlock.Config{Nodes: manyNodes(1, 1), NextNodes: []string{"10.0.0.1", "me:sesame@10.0.0.2"}}},
	{"65 nodes in Nodes and NextNodes together, at most 64 are allowed: change the nodes in several steps", redlock.Config{Nodes: manyNodes(1, 33), NextNodes: manyNodes(34, 32)}},
	{"10.0.0.1:7 is in Nodes and in NextNodes with other credentials or options: write it alike in both", redlock.Config{Nodes: manyNodes(7, 1), NextNodes: []string{"10.0.0.1:7", "10.0.0.1:8"}}},
	{"10.0.0.1:1 is in Nodes and in NextNo", redlock.Config{Nodes: manyNodes(1, 1), NextNodes: []string{manyNodes(1, 1)[0] + "?persistent=yes", "b"}}},
	{"0 nodes, want 1 to 64", redlock.Config{NextNodes: manyNodes(1, 3)}},
	{"NextNodes: node 0: address is empty", redlock.Config{Nodes: manyNodes(1, 1), NextNodes: []string{""}}},
	{"both NextNodes and Groups are set", redlock.Config{NextNodes: manyNodes(1, 3), Groups: hosts("a")}},

	{"both NextNodes and Groups are set: NextNodes changes Nodes, and NextGroups", redlock.Config{NextNodes: []string{"a"}, Groups: hosts("a"), NextGroups: hosts("b")}},
	{"NextGroups is set and Groups is not: set Groups to the present groups, or to one group of the present Nodes", redlock.Config{Nodes: []string{"a"}, NextGroups: hosts("a", "b")}},
	{"NextGroups has the same groups as Groups: leave it empty unless they change", redlock.Config{Groups: hosts("a", "b"), NextGroups: hosts("a:6379", "b")}},
	{"both Groups[1] and NextGroups[0] have the node b:6379: each group needs masters that no other has; one that goes to another group leaves its group in a change before", redlock.Config{Groups: hosts("a", "b"), NextGroups: hosts("b", "a")}},
	{"both NextGroups[0] and NextGroups[1] have the node b:6379: each group needs masters that no other has", redlock.Config{Groups: hosts("a"), NextGroups: hosts("b", "b")}},
	{"NextGroups[1]: no nodes: remove the group, or list its masters", redlock.Config{Groups: hosts("a"), NextGroups: [][]string{{"a"}, {}}}},
	{"NextGroups[0]: node 0: address is empty", redlock.Config{Groups: hosts("a"), NextGroups: [][]string{{""}}}},
	{"65 NextGroups, at most 64", redlock.Config{Groups: hosts("a"), NextGroups: make([][]string, 65)}},
	{"b:6379 is in Nodes and in NextNodes with other credentials", redlock.Config{Groups: hosts("a", "b"), NextGroups: [][]string{{"redis://:sesame@a"}, {"b"}, {"c"}}}},
}

// TestWrongConfigs: each error names the field or the node, and shows no password. Addresses alone
// are tested in package conn.
func TestWrongConfigs(t *testing.T) {
	for _, c := range wrongConfigs {
		client, err := redlock.New(c.cfg)
		require.Nil(t, client)
		require.ErrorIs(t, err, redlock.ErrConfig)
		require.ErrorContains(t, err, c.want)
		require.True(t, strings.HasPrefix(err.Error(), "redlock: config: "), "%v", err)
		require.NotContains(t, fmt.Sprintf("%v %+v %#v %v %+v %#v", err, err, err, c.cfg, c.cfg, c.cfg), "sesame")
	}
}
