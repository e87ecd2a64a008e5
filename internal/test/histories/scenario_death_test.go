package histories

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

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
