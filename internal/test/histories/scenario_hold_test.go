package histories

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
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

// deaths are scenarios of processes that die, and of the cost of idle ones.
var deaths = []scenario{
	// The next process has the lock when the ticket of the dead one has expired.
	{"the first in the queue dies", 5, func(s *stage) {
		held := s.take(s.Client(), "k", longTTL)
		c, m := s.ClientOn(s.Machine())
		s.wait(c, "k", longTTL)
		next, last := s.wait(s.Client(), "k", longTTL), s.wait(s.Client(), "k", longTTL)
		s.kill(m)
		s.release(held)
		s.inTurn(1200*time.Millisecond, next, last)
	}},
	// The next process has the lock after its expiry on a quorum of the nodes.
	{"a holder that keeps its lock alive dies", 5, func(s *stage) {
		const ttl = time.Second
		c, m := s.ClientOn(s.Machine())
		held := s.take(c, "k", ttl)
		_, stop := held.KeepAlive(s.ctx)
		defer stop()
		next, last := s.wait(s.Client(), "k", longTTL), s.wait(s.Client(), "k", longTTL)
		time.Sleep(3 * ttl)
		s.kill(m)
		s.inTurn(ttl+5*promptly, next, last)
	}},
	{"idle waiters", 5, func(s *stage) {
		const keys, long = 50, 10 * time.Second
		holder, c := s.Client(), s.Client()
		var all []*waiting
		var held []redlock.Lock
		for i := range keys {
			key := fmt.Sprint("k", i)
			held = append(held, s.take(holder, key, time.Hour))
			all = append(all, s.begin(s.ctx, c, key, longTTL))
		}
		time.Sleep(long / 2)
		before := s.commands()
		time.Sleep(long)
		perSecond := float64(s.commands()-before) / float64(len(s.Nodes)) / long.Seconds() / keys
		s.T.Logf("%.2f commands/s of a waiter at each node", perSecond)
		require.Less(s.T, perSecond, 4.0)
		for i, w := range all {
			s.release(held[i])
			s.granted(w)
		}
	}},
}

// kill takes the network from a machine for ever.
func (s *stage) kill(m *virtual.Machine) {
	for _, node := range s.Nodes {
		m.Link(node).Refuse(true)
		m.Link(node).Reset()
	}
}

// commands is the number of commands executed by the nodes.
func (s *stage) commands() (sum int64) {
	for _, node := range s.Servers {
		for _, n := range node.Commands() {
			sum += n
		}
	}
	return sum
}
