package redlock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// TestPanicThroughACall: the callback of another's operation may be run by a call,
// and panic there. Who recovers from that goes on with a client that makes up
// nothing: the call's place, with its result, is not given to the next one.
func TestPanicThroughACall(t *testing.T) {
	servers := fakeredis.StartN(t, 3)
	var c *redlock.Client
	var other *redlock.Op
	c = newClient(t, fakeredis.Addrs(servers), func(cfg *redlock.Config) {
		cfg.Hooks.Vote = func(redlock.Vote) {
			if op := other; op != nil {
				other = nil
				_ = c.Submit(op) // waits, and is sent by whoever is at it
			}
		}
	})
	for _, s := range servers {
		s.Down()
	}
	await(t, "all nodes down", func() bool {
		for _, n := range c.Nodes() {
			if n.Up {
				return false
			}
		}
		return true
	})
	for range 50 {
		other = &redlock.Op{Kind: redlock.OpRelease, Key: []byte("other"), Done: func(*redlock.Op) { panic("of a callback") }}
		require.PanicsWithValue(t, "of a callback", func() { _, _ = c.TryAcquire(t.Context(), "key", ttl) })
		_, err := c.TryAcquire(t.Context(), "key", ttl)
		require.ErrorIs(t, err, redlock.ErrNoQuorum, "no node was asked")
	}
}
