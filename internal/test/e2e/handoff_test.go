package e2e

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestManyForbiddenHints: a node refuses many of its missed releases, for their keys. Each is then
// sent again by itself. The node gets the others, and its connection stays.
func TestManyForbiddenHints(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		// A node may owe so many replies, fewer than there are hints.
		const limit, hints = 2048, 5000
		r := cluster.New(t, 3, func(c *redlock.Config) { knobs.Of(c).MaxInFlight = limit })
		l := cluster.MustAcquire(t, r.Client, "lock:honest", ttl)
		r.AwaitHolders(t, 3, l.Key())
		var lastAlone atomic.Bool
		allowLocks(r.Servers[0])
		r.Servers[0].Down()
		cluster.AwaitNodesUp(t, r.Client, 2)
		done := make(chan struct{}, hints)
		last := fmt.Sprint(forbidden, hints-1)
		for i := range hints {
			require.NoError(t, r.Submit(releaseOp(fmt.Sprint(forbidden, i), func(*redlock.Op) { done <- struct{}{} })))
		}
		for range hints {
			testkit.Get(t, done)
		}
		require.NoError(t, l.Release(t.Context()))
		r.Servers[0].OnCommand(func(_ int64, args []string) {
			if args[0] == "EVALSHA" && args[2] == "1" && args[3] == last {
				lastAlone.Store(true)
			}
		})
		require.NoError(t, r.Servers[0].Heal())
		testkit.Await(t, "the last hint by itself", lastAlone.Load)
		awaitNoLock(t, r)
		n := cluster.Settle(t, r.Client).Nodes[0]
		require.True(t, n.Up)
		require.EqualValues(t, 2, n.Connects)
	})
}

// TestFatalAnswerToARelease: a node that answers a release, or its hint, by an error that ends the connection is given
// it on the next one.
func TestFatalAnswerToARelease(t *testing.T) {
	for name, flavor := range map[string]fakeredis.Flavor{"by script": fakeredis.Redis7, "native": fakeredis.Valkey9} {
		cluster.Run(t, name, func(t *testing.T) {
			r := cluster.Of(t, cluster.Start(t, 3, fakeredis.Options{Flavor: flavor}))
			l := cluster.MustAcquire(t, r.Client, "lock:k", ttl)
			r.AwaitHolders(t, 3, l.Key())
			left := 2 // the release and its hint
			r.Servers[0].OnCommand(func(_ int64, args []string) {
				if release := args[0] == "EVALSHA" || args[0] == "DELIFEQ"; release && strings.Contains(strings.Join(args, " "), l.Key()) && left > 0 {
					left--
					r.Servers[0].ErrorReply(args[0], "READONLY You can't write against a read only replica.", 1)
				}
			})
			require.NoError(t, l.Release(t.Context()))
			awaitNoLock(t, r)
			require.Zero(t, left)
		})
	}
}
