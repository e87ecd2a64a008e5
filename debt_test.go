package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// TestMoreOwedThanMayBeOwed: a node that was away is owed more releases than
// Config.MaxInFlight lets it owe replies for. It comes back all the same.
func TestMoreOwedThanMayBeOwed(t *testing.T) {
	servers := startN(t, 3, fakeredis.Options{Flavor: fakeredis.Valkey9})
	r := newRigOf(t, servers, func(cfg *redlock.Config) { cfg.MaxInFlight = 50 })
	var locks []redlock.Lock
	for i := range 100 {
		locks = append(locks, mustAcquire(t, r.Client, fmt.Sprint("key ", i), ttl))
	}
	servers[2].Down()
	await(t, "node 2 down", func() bool { return !r.Nodes()[2].Up })
	for _, l := range locks {
		require.NoError(t, l.Release(t.Context()))
	}
	require.NoError(t, servers[2].Heal())
	require.Eventually(t, func() bool {
		before := r.Nodes()[2]
		l := mustAcquire(t, r.Client, "now", ttl)
		err := l.Release(t.Context())
		return err == nil && before.Up && r.Nodes()[2].RoundTrips > before.RoundTrips
	}, 5*time.Second, time.Millisecond)
}

// TestOpOfAnotherLockIsOwed: an Op that has acquired a lock which one node never
// heard of, and then releases another, is not taken for the release of the first.
func TestOpOfAnotherLockIsOwed(t *testing.T) {
	r := newRig(t, 3)
	op := &redlock.Op{Kind: redlock.OpAcquire, Key: []byte("held"), TTL: ttl}
	require.NoError(t, submit(t, r.Client, op))
	held := op.Token
	await(t, "set everywhere", func() bool { return r.holders("held") == 3 })
	r.servers[2].Down()
	await(t, "node 2 down", func() bool { return !r.Nodes()[2].Up })
	op.Key = []byte("unheard of")
	require.NoError(t, submit(t, r.Client, op))
	op.Kind = redlock.OpRelease
	require.NoError(t, submit(t, r.Client, op))
	op.Kind, op.Key = redlock.OpAcquire, []byte("unheard of")
	require.NoError(t, submit(t, r.Client, op))
	last := op.Token
	op.Kind, op.Key, op.Token = redlock.OpRelease, []byte("held"), held
	require.NoError(t, submit(t, r.Client, op))
	op.Key, op.Token = []byte("unheard of"), last
	require.NoError(t, submit(t, r.Client, op))
	require.NoError(t, r.servers[2].Heal())
	r.awaitEmpty(t)
}
