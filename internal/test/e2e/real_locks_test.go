package e2e

import (
	"testing"
	"time"

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

// TestRealLife is the life of a lock on real servers, as two clients see it.
func TestRealLife(t *testing.T) {
	t.Parallel()
	servers := realredis.StartN(t, 3)
	testkit.OnBothPaths(t, func(t *testing.T, portable bool) {
		ours := cluster.Connect(t, cluster.RealAddrs(servers), cluster.Portable(portable))
		theirs := cluster.Connect(t, cluster.RealAddrs(servers), cluster.Portable(!portable))
		for range 5 {
			l := cluster.MustAcquire(t, ours, "k", ttl)
			require.Greater(t, l.Remaining(), ttl-cluster.Drift(ttl)-testkit.Patience)
			_, err := theirs.TryAcquire(t.Context(), "k", ttl)
			require.Equal(t, redlock.ErrTaken, err)
			require.NoError(t, l.Extend(t.Context(), 2*ttl))
			require.Greater(t, l.Remaining(), ttl)

			waiter := testkit.InBackground(func() (redlock.Lock, error) { return theirs.Acquire(t.Context(), "k", ttl) })
			require.NoError(t, l.Release(t.Context()))
			require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()))
			got := testkit.Get(t, waiter)
			require.NoError(t, got.Err)
			require.NoError(t, got.Value.Release(t.Context()))
		}
	})
}

// TestRealExpiry: an unreleased lock ends by itself, not before its validity, and cannot be
// extended then.
func TestRealExpiry(t *testing.T) {
	t.Parallel()
	c := cluster.Connect(t, cluster.RealAddrs(realredis.StartN(t, 3)))
	l, err := c.Acquire(t.Context(), "k", 300*time.Millisecond)
	require.NoError(t, err)
	next, err := c.Acquire(t.Context(), "k", ttl)
	require.NoError(t, err)
	require.Zero(t, l.Remaining())
	require.Equal(t, redlock.ErrExpired, l.Extend(t.Context(), ttl))
	require.Equal(t, redlock.ErrNotHeld, l.Release(t.Context()), "it is another's now")
	require.Positive(t, next.Remaining())
	require.NoError(t, next.Extend(t.Context(), ttl))
	require.NoError(t, next.Release(t.Context()))
}
