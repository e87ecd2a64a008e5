package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestPermits: the names of a semaphore have one tag.
func TestPermits(t *testing.T) {
	require.Equal(t, []string{"{pool}:permit:1", "{pool}:permit:2"}, redlock.Permits("pool", 2))
	require.Equal(t, []string{"db{7}:permit:1"}, redlock.Permits("db{7}", 1))
	require.Equal(t, []string{"{a{}b}:permit:1"}, redlock.Permits("a{}b", 1))
	require.Empty(t, redlock.Permits("pool", 0))
	require.Empty(t, redlock.Permits("pool", -1))
}

// TestTryAcquireAny: each permit is had once, by one round trip for each; one look finds a free one, and none is taken to
// be given back. Clients begin at different keys.
func TestTryAcquireAny(t *testing.T) {
	const n = 8
	r := cluster.Of(t, cluster.Start(t, 5))
	keys := redlock.Permits("pool", n)
	held := map[string]redlock.Lock{}
	for i := range n {
		before := cluster.Settle(t, r.Client)
		l, err := r.TryAcquireAny(t.Context(), ttl, keys...)
		require.NoError(t, err)
		require.Contains(t, keys, l.Key())
		require.NotContains(t, held, l.Key())
		held[l.Key()] = l
		after := cluster.Settle(t, r.Client)
		require.EqualValues(t, 1, after.Batches-before.Batches, "each call begins one further: %d", i)
		require.Zero(t, after.Cleanups)
	}
	other := cluster.Connect(t, fakeredis.Addrs(r.Servers))
	before := cluster.Settle(t, other)
	_, err := other.TryAcquireAny(t.Context(), ttl, keys...)
	require.Equal(t, redlock.ErrTaken, err)
	after := cluster.Settle(t, other)
	require.EqualValues(t, 2, after.Batches-before.Batches, "one is asked for, and all others are looked at")
	require.EqualValues(t, 1, after.Acquire.Denied)

	require.NoError(t, held[keys[3]].Release(t.Context()))
	before = cluster.Settle(t, other)
	l, err := other.TryAcquireAny(t.Context(), ttl, keys...)
	require.NoError(t, err)
	require.Equal(t, keys[3], l.Key())
	require.LessOrEqual(t, cluster.Settle(t, other).Batches-before.Batches, uint64(3))
	s, err := r.Inspect(t.Context(), keys[3])
	require.NoError(t, err)
	require.True(t, s.IsHeldBy(l))
	ctx, stop := l.KeepAlive(t.Context())
	defer stop()
	require.NoError(t, ctx.Err())

	first := map[string]bool{}
	for range n {
		l, err := cluster.Connect(t, fakeredis.Addrs(r.Servers)).TryAcquireAny(t.Context(), ttl, redlock.Permits("other", n)...)
		require.NoError(t, err)
		require.NoError(t, l.Release(t.Context()))
		first[l.Key()] = true
	}
	require.Greater(t, len(first), 1)
}
