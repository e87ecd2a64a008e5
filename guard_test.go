package redlock_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/fakeredis"
	"github.com/redlock-go/redlock/quorum"
)

// TestRestartedNodesHaveNoVote: two of three masters restart and forget a lock
// that is held. Nobody is given it by them, for as long as it may be held.
func TestRestartedNodesHaveNoVote(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		guarded := make(chan redlock.Node, 10)
		r := newRig(t, 3, portably(portable), func(cfg *redlock.Config) {
			cfg.Hooks.NodeGuarded = func(n redlock.Node) { guarded <- n }
		})
		mustAcquire(t, r.Client, "k", ttl)
		require.True(t, r.holdersSoon("k"))
		for i, s := range r.servers[:2] {
			require.NoError(t, s.Restart(true))
			n := get(t, guarded)
			require.Equal(t, i, n.Index)
			require.Greater(t, n.Guarded, ttl)
			require.LessOrEqual(t, n.Guarded, ttl+quorum.Drift(ttl))
		}
		require.Equal(t, 1, r.holders("k"), "they have forgotten it")
		for _, key := range []string{"k", "another"} {
			_, err := r.TryAcquire(t.Context(), key, ttl)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.ErrorIs(t, err, conn.ErrGuarded)
		}
	})
}

// TestMaxTTLIsStrict: nodes that have not been up for MaxTTL are not trusted when
// they are met; those that have been are.
func TestMaxTTLIsStrict(t *testing.T) {
	var uptime atomic.Int64
	began := time.Now()
	servers := fakeredis.StartN(t, 3, fakeredis.Options{Now: func() time.Time { return began.Add(time.Duration(uptime.Load())) }})
	strict := func(cfg *redlock.Config) { cfg.MaxTTL = time.Minute }
	c := newClient(t, fakeredis.Addrs(servers), strict)
	for _, n := range c.Nodes() {
		require.Greater(t, n.Guarded, time.Minute)
		require.LessOrEqual(t, n.Guarded, time.Minute+quorum.Drift(time.Minute))
	}
	_, err := c.TryAcquire(t.Context(), "k", time.Second)
	require.ErrorIs(t, err, conn.ErrGuarded)
	_, err = c.TryAcquire(t.Context(), "k", time.Minute+time.Millisecond)
	require.ErrorContains(t, err, "ttl is")
	uptime.Store(int64(time.Hour))
	c = newClient(t, fakeredis.Addrs(servers), strict)
	mustAcquire(t, c, "k", time.Minute)
}
