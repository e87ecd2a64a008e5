package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestHeldCountsLocks, of several keys and attached ones too, until they are released; and
// their keys are known after that.
func TestHeldCountsLocks(t *testing.T) {
	r := cluster.New(t, 3)
	owner := cluster.Connect(t, fakeredis.Addrs(r.Servers))
	one := cluster.MustAcquire(t, r.Client, "one", ttl)
	all, err := r.AcquireAll(t.Context(), ttl, "c", "a", "b")
	require.NoError(t, err)
	theirs := cluster.MustAcquire(t, owner, "theirs", ttl)
	attached, err := r.Attach(t.Context(), "theirs", theirs.Token(), time.Now().Add(ttl))
	require.NoError(t, err)
	for left, l := range []redlock.Lock{one, all, attached} {
		require.Equal(t, 3-left, cluster.Settle(t, r.Client).Held)
		keys := l.Keys()
		require.NoError(t, l.Release(t.Context()))
		require.Empty(t, l.Token())
		require.Equal(t, keys, l.Keys())
		require.Equal(t, keys[0], l.Key())
	}
	require.Zero(t, cluster.Settle(t, r.Client).Held)
	require.Equal(t, []string{"a", "b", "c"}, all.Keys())
}
