package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// operator types commands about real nodes, only the last of them with the name localhost.
type operator struct {
	*testing.T
	servers []*realredis.Server
	nodes   string
}

func newOperator(t *testing.T, n int) *operator {
	t.Parallel()
	o := &operator{T: t, servers: realredis.StartN(t, n)}
	var nodes []string
	for _, s := range o.servers {
		nodes = append(nodes, "redis://"+s.Addr())
	}
	_, port, _ := strings.Cut(o.servers[n-1].Addr(), ":")
	nodes[n-1] = "localhost:" + port
	o.nodes = strings.Join(nodes, ",")
	return o
}

// types types a command, requires a status, and returns the output.
func (o *operator) types(want int, typed string, args ...any) string {
	o.Helper()
	status, out, errs := redlockAt(o.T, o.nodes, strings.Fields(fmt.Sprintf(typed, args...))...)
	require.Equal(o.T, want, status, "%s: %s%s", typed, out, errs)
	return out + errs
}

// asks asks a node.
func (o *operator) asks(node int, command string) string {
	return testkit.DialText(o.T, o.servers[node].Addr()).Do(command)
}

// TestLooksWriteNothing: a look writes nothing, and neither does a refused act. So none of them hinders the next act,
// although their longest TTL was another.
func TestLooksWriteNothing(t *testing.T) {
	o := newOperator(t, 3)
	blank := func() {
		t.Helper()
		for node := range o.servers {
			require.Equal(t, ":0", o.asks(node, "DBSIZE"), node)
		}
	}
	require.Contains(t, o.types(exitNoQuorum, "fence status -max-ttl 7s"), "redlock fence init")
	o.types(exitNoQuorum, "nodes -fenced -max-ttl 7s")
	o.types(exitOK, "inspect -fenced -max-ttl 7s key")
	blank()
	o.types(exitUsage, "fence recover -max-ttl 7s -at-least 9007199254740800")
	o.types(exitNoQuorum, "fence change -max-ttl 7s -next-max-ttl 8s")
	require.NoError(t, o.servers[1].Kill())
	o.types(exitUsage, "fence init -max-ttl 7s")
	require.NoError(t, o.servers[1].Restart())
	blank()
	o.types(exitOK, "fence init -max-ttl 100ms")
	o.types(exitOK, "nodes -fenced -max-ttl 100ms")
	o.types(exitUsage, "fence change -max-ttl 100ms")

	// A node has forgotten. To look at it by the right configuration, or by another one, gives it no notice.
	o.asks(0, "FLUSHALL")
	require.Contains(t, o.types(exitOK, "fence status -max-ttl 100ms"), "no vote")
	o.types(exitNoQuorum, "fence status -max-ttl 7s")
	o.types(exitUsage, "fence recover -max-ttl 7s -at-least 1")
	o.asks(1, "FLUSHALL")
	for _, command := range []string{"fence status", "nodes -fenced", "fence change -next-max-ttl 200ms"} {
		o.types(exitNoQuorum, "%s -max-ttl 100ms", command)
	}
	require.Equal(t, ":0 :0", o.asks(0, "DBSIZE")+" "+o.asks(1, "DBSIZE"))
	o.types(exitOK, "fence recover -max-ttl 100ms -at-least 1")
}

// TestRecoverIsRefused: recover refuses a number far beyond those shown by the nodes, and names of no node. If the
// remaining nodes are no quorum, the act ends with that reason.
func TestRecoverIsRefused(t *testing.T) {
	o := newOperator(t, 3)
	const recovers = "fence recover -max-ttl 100ms -at-least "
	o.types(exitOK, "fence init -max-ttl 100ms")
	now := time.Now().UnixMicro()
	far := now + (25 * time.Hour).Microseconds()
	require.Contains(t, o.types(exitUsage, "%s%d", recovers, far), "more than a day beyond")
	require.NotContains(t, o.asks(0, "ZRANGE redlock:fence 0 -1"), "floor")
	o.types(exitOK, "%s%d", recovers, now+(23*time.Hour).Microseconds())
	o.types(exitOK, "%s%d -force", recovers, far)
	o.types(exitOK, "%s%d", recovers, far+(23*time.Hour).Microseconds()) // the nodes show as much now

	o.asks(0, "FLUSHALL")
	require.NoError(t, o.servers[1].Kill())
	require.NoError(t, o.servers[2].Kill())
	first, second := o.servers[0].Addr(), o.servers[1].Addr()
	for _, c := range []struct{ lost, says string }{
		{"orders", "orders:6379 is no node of this client, which has " + first},
		{"127.0.0.1", "one of " + first + ", " + second + ": name its port"},
		{"127.0.0.1:6379", "127.0.0.1:6379 is no node"},
		{"redis://user:secret@", "named wrongly"},
	} {
		out := o.types(exitUsage, "%s1 -lost %s", recovers, c.lost)
		require.Contains(t, out, c.says)
		require.NotContains(t, out, "secret")
	}
	require.Contains(t, o.types(exitFailed, "%s1 -lost localhost", recovers), second+" cannot be asked and may remember")
	out := o.types(exitNoQuorum, "%s1 -lost redis://user:secret@%s/0,localhost", recovers, second)
	require.Contains(t, out, "no quorum is left without "+second)
	require.NotContains(t, out, "secret")
	require.NoError(t, o.servers[2].Restart())
	o.asks(2, "FLUSHALL")
	o.types(exitOK, "%s1 -lost redis://%s", recovers, second)
}
