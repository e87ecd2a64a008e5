package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// heldEverywhere starts masters and acquires a lock known to all of them.
func heldEverywhere(t *testing.T) (*cluster.Cluster, redlock.Lock) {
	t.Helper()
	r := cluster.New(t, 3)
	l := cluster.MustAcquire(t, r.Client, "k", ttl)
	r.AwaitHolders(t, 3, "k")
	return r, l
}

// TestReleaseAsync: the handle is dead at once, and the release keeps its place before an acquire
// of the same key, and travels with it: a pair is one round trip.
func TestReleaseAsync(t *testing.T) {
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		const pairs = 100
		r := cluster.New(t, 5, cluster.Portable(portable))
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		testkit.Await(t, "a pair is a round trip", func() bool { // on a busy machine a tick may come between its two calls
			before := cluster.Settle(t, r.Client)
			for range pairs {
				l.ReleaseAsync()
				require.Empty(t, l.Token())
				require.Zero(t, l.Remaining())
				l.ReleaseAsync()
				require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
				require.Equal(t, redlock.ErrNotHeld, l.Extend(t.Context(), ttl))
				l = cluster.MustAcquire(t, r.Client, "k", ttl) // in one attempt
			}
			after := cluster.Settle(t, r.Client)
			require.EqualValues(t, pairs, after.Release.Won-before.Release.Won, "each is sent once")
			require.EqualValues(t, 2*pairs, after.Operations-before.Operations)
			require.Equal(t, 1, after.Held)
			return after.Batches-before.Batches < pairs+pairs/4
		})
		awaitPassed(t, 50*time.Millisecond) // the client sleeps
		l.ReleaseAsync()
		r.AwaitEmpty(t)
		require.Zero(t, cluster.Settle(t, r.Client).Held)
		redlock.Lock{}.ReleaseAsync()
	})
}

// TestARefusedReleaseIsRepeated until the node has answered it, after any error.
func TestARefusedReleaseIsRepeated(t *testing.T) {
	for name, flavor := range map[string]fakeredis.Flavor{"by script": fakeredis.Redis7, "native": fakeredis.Valkey9} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.Of(t, cluster.Start(t, 3, fakeredis.Options{Flavor: flavor}))
			for _, refusal := range []string{
				"NOPERM this user has no permissions to run the 'evalsha' command", "NOPERM No permissions to access a key",
				"ERR internal", "ERR unknown command 'EVALSHA'", "NOSCRIPT No matching script.", "LOADING Redis is loading the dataset in memory",
				"BUSY Redis is busy running a script.", "MISCONF Errors writing to the AOF file", "OOM command not allowed",
				"NOREPLICAS Not enough good replicas to write.", "READONLY You can't write against a read only replica.",
				"MASTERDOWN Link with MASTER is down", "CLUSTERDOWN The cluster is down", "MOVED 1 127.0.0.1:1", "ASK 1 127.0.0.1:1",
				"TRYAGAIN Multiple keys request during rehashing of slot", "CROSSSLOT Keys in request don't hash to the same slot",
				"NOAUTH Authentication required.", "EXECABORT Transaction discarded", "UNBLOCKED client unblocked", "NOGOODSLAVE", "CODE of a later server",
			} {
				l := cluster.MustAcquire(t, r.Client, "lock:k", ttl)
				r.AwaitHolders(t, 3, l.Key())
				left := 1
				switch code, _, _ := strings.Cut(refusal, " "); code {
				case "NOPERM", "NOSCRIPT", "ERR": // after these it is sent again at once
					left = 2
				case "READONLY": // it ends the connection, and the hint is refused on the next one
					left = 2
				}
				r.Servers[0].OnCommand(func(_ int64, args []string) {
					if release := strings.HasPrefix(args[0], "EVAL") || args[0] == "DELIFEQ"; release && strings.Contains(strings.Join(args, " "), l.Key()) && left > 0 {
						left--
						r.Servers[0].ErrorReply(args[0], refusal, 1)
					}
				})
				require.NoError(t, l.Release(t.Context()))
				began := time.Now()
				awaitNoLock(t, r)
				require.Less(t, time.Since(began), 10*time.Second, refusal) // after READONLY a redial and the pause of a hint
				require.Zero(t, left, refusal)
				cluster.AwaitNodesUp(t, r.Client, 3)
			}
		})
	}
}
