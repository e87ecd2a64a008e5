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
	servers := fakeredis.StartN(t, 3, fakeredis.Options{Flavor: fakeredis.Valkey9})
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
