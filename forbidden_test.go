package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// TestForbiddenKey: where the user may do no more than it must, native commands
// on some keys, a lock on another key is refused and does the others no harm.
func TestForbiddenKey(t *testing.T) {
	for _, flavor := range []fakeredis.Flavor{fakeredis.Valkey9, fakeredis.Redis84} {
		t.Run(flavor.String(), func(t *testing.T) {
			servers := startN(t, 3, fakeredis.Options{Flavor: flavor})
			for _, s := range servers {
				s.DenyScripts()
				s.AllowKeys("lk:")
			}
			c := newClient(t, fakeredis.Addrs(servers))
			l := mustAcquire(t, c, "lk:1", ttl)
			_, err := c.TryAcquire(t.Context(), "another's", ttl)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.NoError(t, l.Extend(t.Context(), ttl))
			require.NoError(t, l.Release(t.Context()))
		})
	}
}
