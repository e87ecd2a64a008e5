package e2e

import (
	"log/slog"
	"slices"
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

// awaitRealTracked waits until a server tracks so many keys: the key of a lock, and a ticket.
func awaitRealTracked(t *testing.T, a *cluster.Admin) {
	t.Helper()
	testkit.Await(t, "tracked keys", func() bool {
		return strings.Contains(a.Do("INFO stats"), "tracking_total_keys:2")
	})
}

// TestRealWoken: a waiter learns of a release of any key, also of one that looks like a name beside another.
func TestRealWoken(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{
		"longest": strings.Repeat("k", 4096),
		"a gap":   "k:redlock:gap",
		"a queue": "k:redlock:queue",
		"bytes":   "k\r\n\x00$3\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := realredis.Start(t)
			admin := cluster.NewAdmin(t, s)
			c, other := cluster.Connect(t, []string{s.Addr()}, rarely), cluster.Connect(t, []string{s.Addr()})
			held := cluster.MustAcquire(t, other, key, ttl)
			next := acquiring(t, c, key)
			awaitRealTracked(t, admin)
			time.Sleep(20 * time.Millisecond)
			require.NoError(t, held.Release(t.Context()))
			testkit.AtOnce(t, func() { require.NoError(t, testkit.Get(t, next).Err) })
		})
	}
}

// TestRefusedForNow: a node out of memory when tracking is switched on is asked again.
func TestRefusedForNow(t *testing.T) {
	cluster.On(t, 1, func(t *testing.T, r *cluster.Cluster) {
		held := cluster.MustAcquire(t, cluster.Connect(t, fakeredis.Addrs(r.Servers)), "k", ttl)
		s := r.Servers[0]
		refuses := sync.OnceFunc(func() { s.ErrorReply("SET", "OOM command not allowed when used memory > 'maxmemory'.", 2) })
		s.OnCommand(func(_ int64, args []string) {
			if args[0] == "CLIENT" && args[1] == "TRACKING" {
				refuses() // the SET behind it, also when that is sent again, with the text of a script
			}
		})
		next := acquiring(t, r.Client, "k")
		time.Sleep(5 * time.Second)
		require.NoError(t, held.Release(t.Context()))
		released := time.Now()
		require.NoError(t, testkit.Get(t, next).Err)
		require.Less(t, time.Since(released), 50*time.Millisecond)
	}, rarely)
}

// The permissions beside the minimum for waking waiters, and for serving processes in order.
var (
	wakePrivileges  = []string{"+client|tracking", "+client|caching"}
	queuePrivileges = []string{"+zadd", "+zrem", "+zrange"}
)

// frequently has a client that is not woken ask soon.
func frequently(c *redlock.Config) {
	c.Retry = redlock.Retry{Min: 5 * time.Millisecond, Max: 20 * time.Millisecond}
}

// rivals are two clients, each with its log sink.
func rivals(t *testing.T, nodes []string, change func(*redlock.Config)) (clients []*redlock.Client, sinks []*testkit.LogSink) {
	for range 2 {
		sink := new(testkit.LogSink)
		clients = append(clients, cluster.Connect(t, nodes, change, func(c *redlock.Config) { c.Logger = sink.Logger(slog.LevelWarn) }))
		sinks = append(sinks, sink)
	}
	return clients, sinks
}

// alternate has two clients wait for each other, in turn, and returns how long the locks lay idle, sorted.
func alternate(t *testing.T, clients []*redlock.Client, turns int) (idle []time.Duration) {
	held := cluster.MustAcquire(t, clients[0], "lock:1", ttl)
	for turn := range turns {
		next := clients[(turn+1)%2]
		waiter := inLine(t, next, t.Context(), "lock:1", 1)
		testkit.Await(t, "refused", func() bool { return next.Stats().Acquire.Denied > 0 })
		time.Sleep(10 * time.Millisecond) // the lock is held
		start := time.Now()
		require.NoError(t, held.Release(t.Context()))
		held = locked(t, waiter)
		idle = append(idle, time.Since(start))
	}
	require.NoError(t, held.Release(t.Context()))
	slices.Sort(idle)
	return idle
}

// requireBrief checks that no lock lay idle until its waiter asked by itself.
func requireBrief(t *testing.T, what string, idle []time.Duration) {
	t.Log(what, "idle for", idle)
	require.Less(t, idle[len(idle)-1], testkit.Patience/2, what)
}

// count is how often clients have logged a text, at most: each of them.
func count(sinks []*testkit.LogSink, text string) (n int) {
	for _, s := range sinks {
		n = max(n, strings.Count(s.String(), text))
	}
	return n
}

// TestRealWokenPrivileges: the documented permissions are enough for waiters to be woken in order,
// and each of them is needed: without one they ask again and again. The log has it once for a node.
func TestRealWokenPrivileges(t *testing.T) {
	t.Parallel()
	realredis.EachKind(t, func(t *testing.T, kind realredis.Kind) {
		admins, nodes := documented("all").servers(t, kind)
		clients, sinks := rivals(t, nodes, rarely)
		for _, c := range clients { // a forbidden key shows nothing of others
			require.ErrorIs(t, errorOf(c.TryAcquire(t.Context(), "another's", ttl)), redlock.ErrNoQuorum)
		}
		requireBrief(t, "in order", alternate(t, clients, 4))
		require.Zero(t, count(sinks, "WARN"), sinks)

		withoutEach(admins, slices.Concat(wakePrivileges, queuePrivileges), func(privilege string) {
			text := "node refuses the script by which processes queue up"
			if slices.Contains(wakePrivileges, privilege) {
				text = "node does not report when a lock is freed"
			}
			clients, sinks := rivals(t, nodes, frequently)
			idle := alternate(t, clients, 3)
			requireBrief(t, "without "+privilege, idle)
			// A process that leaves does not wait for the refusal; the next one waits for its ticket to end.
			isSlow := privilege == "+zrem" && idle[len(idle)-1] > 250*time.Millisecond
			require.True(t, count(sinks, text) > 0 || isSlow, "%s is not needed", privilege)
			require.LessOrEqual(t, count(sinks, text), 3, "%s: once for a node", privilege)
			for i, s := range sinks {
				require.LessOrEqual(t, strings.Count(s.String(), "WARN"), 3, "%s: %v", privilege, s)
				require.NoError(t, clients[i].Close())
			}
		})
	})
}

// TestRealWokenOtherwise: a server without RESP3 pushes nothing. Nodes with room for one tracked key forget the others, with a
// push; this costs waiters an attempt. Waiters are served all the same, and none loses its turn.
func TestRealWokenOtherwise(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{"without HELLO": {"--rename-command", "HELLO", ""}, "no room": {"--tracking-table-max-keys", "1"}} {
		t.Run(name, func(t *testing.T) {
			servers, retry := realredis.StartN(t, 3, realredis.Options{Args: args}), frequently
			if name == "no room" {
				retry = rarely
			}
			clients, sinks := rivals(t, cluster.RealAddrs(servers), retry)
			requireBrief(t, name, alternate(t, clients, 4))
			if name == "no room" {
				require.Zero(t, count(sinks, "WARN"), sinks)
				return
			}
			calls := cluster.NewAdmin(t, servers[0]).Text("INFO commandstats")
			require.NotContains(t, calls, "cmdstat_client|caching")
			require.Regexp(t, `cmdstat_set:calls=[1-9]`, calls)
		})
	}
}
