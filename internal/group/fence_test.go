package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// TestCollectTrustsNoClock: a client whose clock is far ahead does not use up the tokens of
// all keys, and its clock, which is user code, is not called by the medic. What is collected
// follows from tokens that were granted.
func TestCollectTrustsNoClock(t *testing.T) {
	s, err := fakeredis.Start(fakeredis.Options{})
	require.NoError(t, err)
	defer s.Close()
	var broken bool
	g, err := New(Config{
		Nodes: []string{s.Addr()}, Fenced: true, Engine: engine.Config{MaxTTL: 20 * time.Millisecond},
		QuorumError:  func(*Group, *engine.Op) error { return engine.ErrNoQuorum },
		AcquireError: func(_ string, _ int, _ time.Duration, last, _ error) error { return last },
		FenceClock: func() time.Time {
			if broken {
				panic("user code in the medic")
			}
			return time.Now()
		},
	})
	require.NoError(t, err)
	defer g.Close()
	require.NoError(t, g.InitFencing(t.Context()))
	h, err := g.Acquire(t.Context(), "k", 20*time.Millisecond)
	require.NoError(t, err)
	before, _ := s.Fence(DefaultFenceSet)
	broken = true
	g.fence.medic.collect()
	after, _ := s.Fence(DefaultFenceSet)
	require.Equal(t, before, after)
	g.fence.grant(h.Fence() + 2*uint64(keepTokens.Microseconds()))
	g.fence.medic.collect()
	after, _ = s.Fence(DefaultFenceSet)
	require.Empty(t, after.Tokens)
	require.Equal(t, h.Fence()+uint64(keepTokens.Microseconds()), after.Floor)
}
