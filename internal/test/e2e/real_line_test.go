package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

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

// TestRealWoken: a waiter learns of a release of any key, also of one that looks like a name beside
// another.
func TestRealWoken(t *testing.T) {
	t.Parallel()
	for name, key := range map[string]string{
		"usual":   "k",
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

// TestRealRefusedForNow: a node out of memory when tracking is switched on is asked again.
func TestRealRefusedForNow(t *testing.T) {
	t.Parallel()
	s := realredis.Start(t)
	admin := cluster.NewAdmin(t, s)
	c := cluster.Connect(t, []string{s.Addr()})
	held := cluster.MustAcquire(t, cluster.Connect(t, []string{s.Addr()}), "k", ttl)
	require.Equal(t, "+OK", admin.Do("CONFIG SET maxmemory 1"))
	next := acquiring(t, c, "k")
	testkit.Await(t, "refused", func() bool { // the attempt, and the try of tracking
		refused := admin.Do("INFO errorstats")
		return strings.Contains(refused, "errorstat_OOM:count=") && !strings.Contains(refused, "errorstat_OOM:count=1\r")
	})
	require.Equal(t, "+OK", admin.Do("CONFIG SET maxmemory 0"))
	awaitRealTracked(t, admin)
	require.NoError(t, held.Release(t.Context()))
	testkit.AtOnce(t, func() { require.NoError(t, testkit.Get(t, next).Err) })
}
