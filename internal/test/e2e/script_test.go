package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit/cluster"
)

// TestScriptsForbidden: a node that will not run or load them fails the vote, and its error gives
// the reason.
func TestScriptsForbidden(t *testing.T) {
	cluster.Virtually(t, func(t *testing.T) {
		r := cluster.New(t, 3)
		l := cluster.MustAcquire(t, r.Client, "k", ttl)
		r.Servers[:2].Deny("EVALSHA")
		require.ErrorContains(t, l.Extend(t.Context(), ttl), "NOPERM")
		r.Servers[0].Allow()
		require.NoError(t, l.Extend(t.Context(), ttl))

		for _, s := range r.Servers {
			s.Allow()
			s.FlushScripts()
			s.Deny("SCRIPT|LOAD")
		}
		require.ErrorContains(t, l.Release(t.Context()), "server keeps forgetting the script")
		r.Servers.Each(func(s *fakeredis.Server) { s.Allow() })
		require.NoError(t, l.Release(t.Context()))
	})
}

// TestForbiddenKey: where the user has only the minimum, native commands on some keys, a lock on
// another key is refused and does the others no harm.
func TestForbiddenKey(t *testing.T) {
	for _, flavor := range []fakeredis.Flavor{fakeredis.Valkey9, fakeredis.Redis84} {
		cluster.Run(t, flavor.String(), func(t *testing.T) {
			servers := cluster.Start(t, 3, fakeredis.Options{Flavor: flavor})
			for _, s := range servers {
				s.Deny("DEL", "EVAL")
				s.AllowKeys("lk:")
			}
			c := cluster.Connect(t, fakeredis.Addrs(servers))
			l := cluster.MustAcquire(t, c, "lk:1", ttl)
			_, err := c.TryAcquire(t.Context(), "another's", ttl)
			require.ErrorIs(t, err, redlock.ErrNoQuorum)
			require.NoError(t, l.Extend(t.Context(), ttl))
			require.NoError(t, l.Release(t.Context()))
		})
	}
}
