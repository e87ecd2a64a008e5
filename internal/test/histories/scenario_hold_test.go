package histories

import (
	"context"
	"log/slog"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// holds are scenarios of held locks.
var holds = []scenario{
	// A release refused for want of room is refused for all keys, or for none.
	{"release of several keys, busy", 3, func(s *stage) {
		c := s.Client(func(c *redlock.Config) { c.MaxWaiting = 2 })
		l, err := c.AcquireAll(s.ctx, longTTL, "a", "b")
		require.NoError(s.T, err)
		s.Servers.Mute()
		for c.Stats().Waiting == 0 { // there is room for one
			op := &redlock.Op{Kind: redlock.OpRelease, Key: []byte("other"), Done: func(*redlock.Op) {}}
			require.NoError(s.T, c.Submit(op))
			time.Sleep(100 * time.Microsecond)
		}
		ended, cancel := context.WithCancel(s.ctx)
		cancel()
		err = l.Release(ended)
		require.NoError(s.T, s.Servers.Heal())
		time.Sleep(time.Second)
		for _, key := range []string{"a", "b"} {
			if _, taken := s.Client().TryAcquire(s.ctx, key, longTTL); taken == nil {
				require.Zero(s.T, l.Remaining(), "%s is another's, and the release ended with: %v", key, err)
			}
		}
	}},
	// Where the nodes do not show their run_id, no restart is noticed. This must not be silent.
	{"no INFO, no word of it", 3, func(s *stage) {
		s.Servers.Deny("INFO")
		var log testkit.LogSink
		s.Client(func(c *redlock.Config) { c.Logger = log.Logger(slog.LevelWarn) })
		time.Sleep(time.Second)
		require.Regexp(s.T, "(?i)info|run_id|restart", log.String())
	}},
	// A lock found to be lost is another's, and is not passed on.
	{"lost, and released beside a line", 3, func(s *stage) {
		c := s.Client()
		held, w := s.take(c, "k", longTTL), s.wait(c, "k", longTTL)
		for _, node := range s.Servers {
			node.Del("k")
			node.Set("k", "another's", longTTL/2)
		}
		require.ErrorIs(s.T, held.Extend(s.ctx, longTTL), redlock.ErrNotHeld)
		_ = held.Release(s.ctx)
		time.Sleep(time.Second)
		require.True(s.T, w.waits())
		<-w.done
		require.NoError(s.T, w.err)
	}},
}
