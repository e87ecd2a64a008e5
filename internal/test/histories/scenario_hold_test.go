package histories

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

var holds = []scenario{
	// A lock found to be lost is another's, and is not passed on.
	{"lost, and released beside a line", 3, func(s *stage) {
		c := s.Client()
		held, w := s.take(c, "k", longTTL), s.wait(c, "k", longTTL)
		for _, node := range s.Servers {
			node.Del("k")
			node.Set("k", "another's", longTTL/2)
		}
		require.ErrorIs(s.T, held.Extend(s.ctx, longTTL), redlock.ErrNotHeld)
		time.Sleep(promptly) // until the next has asked
		_ = held.Release(s.ctx)
		time.Sleep(time.Second)
		require.True(s.T, w.waits())
		<-w.done
		require.NoError(s.T, w.err)
	}},
	// A holder that has lost its lock gives back nothing of a younger grant, known to its process.
	{"given back behind a younger grant", 3, func(s *stage) {
		c := s.Client()
		for i, do := range []bool{false, true} {
			for j, ttl := range []time.Duration{longTTL, longTTL / 2, 0} {
				key := fmt.Sprint("k", i, j)
				giveBack := s.hung(c, key, do)
				var first *waiting
				if ttl == 0 {
					first = s.wait(c, key, longTTL)
				}
				s.Servers.Del(key)
				var younger redlock.Lock
				if ttl == 0 { // it was granted in line, and is over
					s.release(s.granted(first))
					younger = s.take(s.Client(), key, longTTL)
				} else {
					younger = s.take(c, key, ttl)
				}
				w := s.wait(c, key, longTTL)
				giveBack()
				time.Sleep(time.Second)
				require.True(s.T, w.waits(), "two holders: %v, %d", do, j)
				s.release(younger)
				s.granted(w)
			}
		}
	}},
	// An operator has deleted the key of a holder, and one that shares the lock is granted it while the holder gives it
	// back: what is passed on meanwhile may be in use, so that grant does not stand. Nothing of it is forgotten with a desk
	// that was made for a look, and that is over: the process looks at the queue before, and both stand in line meanwhile.
	{"passed on behind a look", 3, func(s *stage) {
		const far = 10 * time.Millisecond
		c := s.Client()
		l, err := c.Acquire(s.ctx, "k", longTTL)
		require.NoError(s.T, err)
		time.Sleep(far)
		l.ReleaseAsync() // a run of this length owes a look
		first := s.begin(s.ctx, c, "k", longTTL)
		time.Sleep(10 * time.Microsecond) // it waits for the queue's answer
		w := s.wait(c, "k", longTTL)
		held := s.granted(first)
		s.Servers.Del("k")
		s.Servers.Delay(far)
		reader := s.call(s.ctx, func(ctx context.Context) (redlock.Lock, error) { return c.TryAcquireShared(ctx, "k", longTTL) })
		time.Sleep(far / 2)
		held.ReleaseAsync()
		time.Sleep(far / 4)
		s.granted(w)
		s.returns(reader)
		require.Equal(s.T, redlock.ErrTaken, reader.err)
	}},
	// Each extend has those that wait ask again, so a repair has a rival. It is made all the same.
	{"kept alive beside waiters, while nodes come back", 5, func(s *stage) {
		const ttl = time.Second
		c, m := s.ClientOn(s.Machine())
		for _, node := range s.Nodes[2:4] {
			m.Link(node).Refuse(true)
			m.Link(node).Reset()
		}
		held := s.take(c, "k", ttl)
		kept, stop := held.KeepAlive(s.ctx)
		defer stop()
		for range 3 {
			s.wait(s.Client(), "k", longTTL)
		}
		repaired := func(node int) {
			time.Sleep(ttl/3 + promptly)
			value, _ := s.Servers[node].Get("k")
			require.Equal(s.T, held.Token(), value, "node %d", node)
		}
		for node := 2; node < 4; node++ {
			m.Link(s.Nodes[node]).Refuse(false)
			testkit.Await(s.T, "it is up", func() bool { return c.Stats().Nodes[node].Up })
			repaired(node)
		}
		for range 20 { // by chance the repair is sometimes the first
			s.Servers[3].Del("k")
			repaired(3)
		}
		require.NoError(s.T, context.Cause(kept))
	}},
	// An attached handle has the same token. The lock is not passed on: it may end by that handle.
	{"given back beside an attached handle", 3, func(s *stage) {
		c := s.Client()
		held := s.take(c, "k", longTTL)
		state, err := c.Inspect(s.ctx, "k")
		require.NoError(s.T, err)
		attached, err := c.Attach(s.ctx, "k", state.Token(), time.Now().Add(longTTL))
		require.NoError(s.T, err)
		w := s.wait(c, "k", longTTL)
		s.release(held)
		s.granted(w)
		require.ErrorIs(s.T, attached.Release(s.ctx), redlock.ErrNotHeld)
	}},
	// The group of the first key is well, and has nothing to wait for: no key stays.
	{"closed while a set waits for a second group", 6, func(s *stage) {
		for _, graceful := range []bool{false, true} {
			c, other := s.deadGroup((*fakeredis.Server).Hang)
			w := s.call(s.ctx, func(ctx context.Context) (redlock.Lock, error) { return c.TryAcquireAll(ctx, longTTL, "k", other) })
			time.Sleep(promptly)
			require.Equal(s.T, 3, s.Holders("k"))
			end := c.Close
			if graceful {
				end = func() error { return c.Shutdown(s.ctx) }
			}
			require.NoError(s.T, end())
			time.Sleep(time.Millisecond) // until the last messages are there
			<-w.done
			require.Error(s.T, w.err)
			require.Zero(s.T, s.Holders("k"))
			require.NoError(s.T, s.Servers.Heal())
			time.Sleep(promptly)
			s.Servers.Flush()
		}
	}},
}

// hung has a caller hold a lock, perhaps by Do, and returns what has it give that back, lost or not.
func (s *stage) hung(c *redlock.Client, key string, do bool) (giveBack func()) {
	if !do {
		l := s.take(c, key, longTTL)
		return func() { _ = l.Release(s.ctx) }
	}
	inside, leave := make(chan struct{}), make(chan struct{})
	go func() {
		_ = c.Do(s.ctx, key, longTTL, func(context.Context) error {
			close(inside)
			<-leave
			return nil
		})
	}()
	<-inside
	return func() { close(leave) }
}

// deaths are scenarios of processes that die, and of the cost of idle ones.
var deaths = []scenario{
	// The next process has the lock when the ticket of the dead one has expired.
	{"the first in the queue dies", 5, func(s *stage) {
		held := s.take(s.Client(), "k", longTTL)
		s.dies(1200*time.Millisecond, func(c *redlock.Client) { s.wait(c, "k", longTTL) }, func() { s.release(held) })
	}},
	// The next process has the lock after its expiry on a quorum of the nodes.
	{"a holder that keeps its lock alive dies", 5, func(s *stage) {
		const ttl = time.Second
		s.dies(ttl+5*promptly, func(c *redlock.Client) { _, _ = s.take(c, "k", ttl).KeepAlive(s.ctx) }, func() {})
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
		for i, w := range all { // at each moment of the second between two questions
			s.release(held[i])
			s.inTurn(promptly, w)
			time.Sleep(50 * time.Millisecond)
		}
	}},
}

// dies requires that two callers, of processes of their own, have the lock within a bound of the death of a third, which has
// done something before, and of what comes after.
func (s *stage) dies(bound time.Duration, before func(c *redlock.Client), after func()) {
	c, m := s.ClientOn(s.Machine())
	before(c)
	next, last := s.wait(s.Client(), "k", longTTL), s.wait(s.Client(), "k", longTTL)
	time.Sleep(3 * time.Second)
	s.kill(m)
	after()
	s.inTurn(bound, next, last)
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
