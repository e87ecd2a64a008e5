package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestRealKillsLoseNoLock: nodes that write to disk before they answer may be killed while a lock
// is held, and a quorum still knows it.
func TestRealKillsLoseNoLock(t *testing.T) {
	t.Parallel()
	servers := realredis.StartN(t, 5, realredis.Options{Persistent: true})
	each := func(of []*realredis.Server, f func(*realredis.Server) error) {
		for _, s := range of {
			require.NoError(t, f(s))
		}
	}
	ours, theirs := cluster.Connect(t, cluster.PersistentAddrs(servers)), cluster.Connect(t, cluster.PersistentAddrs(servers))
	each(servers[3:], (*realredis.Server).Kill)
	l := cluster.MustAcquire(t, ours, "k", ttl) // no node may forget it now
	each(servers[3:], (*realredis.Server).Restart)
	each(servers[:2], (*realredis.Server).Kill)
	each(servers[:2], (*realredis.Server).Restart)
	testkit.Await(t, "a refusal", func() bool {
		_, err := theirs.TryAcquire(t.Context(), "k", ttl)
		require.Error(t, err, "two hold it")
		return err == redlock.ErrTaken
	})
	testkit.Await(t, "an extension", func() bool { return l.Extend(t.Context(), ttl) == nil })
	require.NoError(t, l.Release(t.Context()))
	again, err := theirs.Acquire(t.Context(), "k", ttl)
	require.NoError(t, err)
	require.NoError(t, again.Release(t.Context()))
}
