package client

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/fence"
	"github.com/redlock-go/redlock/internal/client/group"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// TestCollectTrustsNoClient: a client whose clock is far ahead does not raise the floor of all
// keys, and its clock, which is user code, is not called on the housekeeper's goroutine. What is collected
// follows from the node's time.
func TestCollectTrustsNoClient(t *testing.T) {
	s, err := fakeredis.Start(fakeredis.Options{})
	require.NoError(t, err)
	defer s.Close()
	var broken atomic.Bool
	c, err := New(Config{
		Nodes: []string{s.Addr()}, Fenced: true, Engine: engine.Config{MaxTTL: 20 * time.Millisecond},
		QuorumError:  func(*group.Group, *engine.Op) error { return engine.ErrNoQuorum },
		AcquireError: func(_ string, _ int, _ time.Duration, last, _ error) error { return last },
		Knobs: knobs.Knobs{FenceClock: func() time.Time {
			if broken.Load() {
				panic("user code on the housekeeper's goroutine")
			}
			return time.Now().Add(24 * time.Hour)
		}},
	}, nil, nil)
	require.NoError(t, err)
	defer c.Close()
	g := c.groups[0]
	acts := fence.Acts{Groups: []*fence.Client{g.Fence}, Join: func(errs []error) error { return errs[0] }}
	call := testkit.Start(func() error {
		return acts.Recover(t.Context(), fencing.Token(time.Now().Add(24*time.Hour).UnixMicro()), nil)
	})
	testkit.Await(t, "its vote", func() bool {
		_, why := g.Fence.Vote(0)
		return why == nil
	})
	require.NoError(t, testkit.Outcome(t, "Recover", call))
	_, err = c.Acquire(t.Context(), "k", 20*time.Millisecond, 0)
	require.NoError(t, err)
	before, _ := s.Fence(fence.DefaultSet)
	broken.Store(true)
	c.house.close() // else its turns would be taken beside those of the test
	c.house = newHousekeeper()
	collect := func() {
		g.Fence.Collect()
		_, _, err := g.Inspect(t.Context(), "k") // on the same connection, after that
		require.NoError(t, err)
	}
	collect()
	after, _ := s.Fence(fence.DefaultSet)
	require.Equal(t, before, after)
	s.SetClock(48 * time.Hour)
	collect()
	after, _ = s.Fence(fence.DefaultSet)
	require.Empty(t, after.Tokens)
	require.InDelta(t, time.Now().Add(48*time.Hour-time.Hour).UnixMicro(), float64(after.Floor), 60e6)
}
