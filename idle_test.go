package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A connection that ends while nobody asks for anything must be noticed then:
// the first acquire after a quiet night would otherwise lose every vote to
// sockets that the servers have long closed.
func TestIdleClientNoticesLostConnections(t *testing.T) {
	onBothPaths(t, func(t *testing.T, portable bool) {
		r := newRig(t, 5, portably(portable))
		for range 3 {
			for _, s := range r.servers {
				s.ResetConns()
			}
			await(t, "every master has a connection again", func() bool {
				for _, s := range r.servers {
					if s.Conns() != 1 {
						return false
					}
				}
				return true
			})
		}
		lock, err := r.Acquire(t.Context(), "k", ttl)
		require.NoError(t, err)
		require.NoError(t, lock.Release(t.Context()))
	})
}
