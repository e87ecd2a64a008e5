package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestGroups: each command finds a key in the group of the clients, and nodes shows all groups, of
// both lists during a change.
func TestGroups(t *testing.T) {
	servers := cluster.Start(t, 9)
	lists := nodesOf(servers[:3]) + ";" + nodesOf(servers[3:6])
	client := cluster.Connect(t, fakeredis.Addrs(servers[:6]), cluster.InGroups(3))
	on := func(args string) string { return expect(t, nil, exitOK, args) }
	var keys []string
	for i := range 8 {
		keys = append(keys, fmt.Sprint("key-", i))
		cluster.MustAcquire(t, client, keys[i], cluster.TTL)
	}
	on("held -nodes " + lists + " " + strings.Join(keys, " "))
	for _, key := range keys {
		on("break -yes -nodes " + lists + " " + key)
		awaitFree(t, servers, key)
	}

	out := on("nodes -json -nodes " + lists + " -next-nodes " + lists + ";" + nodesOf(servers[6:]))
	var shown []node
	require.NoError(t, json.Unmarshal([]byte(out), &shown))
	for i, n := range shown {
		require.Equal(t, servers[i].Addr(), n.Node)
		require.Equal(t, i < 6, n.In == "both")
		require.True(t, n.Votes)
		require.NotZero(t, n.Trip)
	}
	require.Len(t, shown, 9)
}
