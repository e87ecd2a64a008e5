package histories

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
)

// orders are scenarios of who has a lock before whom.
var orders = []scenario{
	{"first come, first served", 3, func(s *stage) {
		c := s.Client()
		held := s.take(c, "k", longTTL)
		var all []*waiting
		for range 5 {
			all = append(all, s.wait(c, "k", longTTL))
		}
		s.release(held)
		s.inOrder("k", all...)
		stats := c.Stats()
		require.EqualValues(s.T, len(all), stats.HandedOver)
		require.EqualValues(s.T, 1, stats.Acquire.Won, "no round trip for any of them")
	}},
	// A caller has a lock that is passed on at once, also while its process waits for a node's answer about its queue.
	{"passed on beside a question", 3, func(s *stage) {
		c, m := s.ClientOn(s.Machine(), func(c *redlock.Config) { c.NodeTimeout = time.Second })
		const ttl, way = 600 * time.Millisecond, 20 * time.Millisecond
		held := s.take(c, "k", ttl)
		for _, node := range s.Nodes {
			m.Link(node).Delay(way, way, 0)
		}
		w := s.begin(s.ctx, c, "k", ttl)
		time.Sleep(2*way + way/4) // it has asked for the lock
		s.Servers.Mute()
		at := time.Now()
		s.release(held)
		<-w.done
		require.NoError(s.T, w.err)
		require.Zero(s.T, w.ended.Sub(at))
		require.EqualValues(s.T, 1, c.Stats().HandedOver)
		require.NoError(s.T, s.Servers.Heal())
	}},
	// A process with many callers has its turn, and one with a single caller.
	{"processes have their turns", 3, func(s *stage) {
		ctx, cancel := context.WithTimeout(s.ctx, 3*time.Second)
		defer cancel()
		all, one := s.busy(ctx, 8, 2*time.Millisecond, s.Client()), s.busy(ctx, 1, 2*time.Millisecond, s.Client())
		many, few := <-all, <-one
		s.T.Log(few, many)
		require.Greater(s.T, few, many/16)
		require.Greater(s.T, many, few)
	}},
	// All sets in line before a caller keep its key free together as long as one may.
	{"sets that wait", 3, func(s *stage) {
		c, other := s.Client(), s.Client()
		a, b := s.take(other, "a", longTTL), s.take(other, "b", longTTL)
		var sets []*waiting
		for range 3 {
			sets = append(sets, s.waitForSet(c, "a", "b"))
		}
		next := s.wait(c, "a", longTTL)
		time.Sleep(soon) // each has waited for longer than a turn is kept
		s.release(a)
		s.inTurn(1200*time.Millisecond+promptly, next)
		s.release(b)
		s.inTurn(soon, sets...)
	}},
	// A set whose context ends leaves the first key to others at once, though it keeps its turn for
	// it.
	{"set that gives up", 3, func(s *stage) {
		other, c := s.Client(), s.Client()
		a, b := s.take(other, "a", longTTL), s.take(other, "b", longTTL)
		ctx, cancel := context.WithCancel(s.ctx)
		go func() { _, _ = c.AcquireAll(ctx, longTTL, "a", "b") }()
		time.Sleep(soon)
		next := s.wait(c, "a", longTTL)
		s.release(a)
		time.Sleep(promptly)
		require.True(s.T, next.waits(), "the set keeps its turn")
		cancel()
		s.inTurn(promptly, next)
		s.release(b)
	}},
	// Where no node can push, a set polls as one caller does, however many keys it has.
	{"large set without pushes", 3, func(s *stage) {
		s.Servers.Deny("CLIENT|TRACKING")
		other, c := s.Client(), s.Client()
		var keys []string
		for i := range 32 {
			keys = append(keys, fmt.Sprint("k", i))
			s.take(other, keys[i], longTTL)
		}
		before := s.Servers[0].Count("SET")
		s.waitForSet(c, keys...)
		time.Sleep(soon)
		require.Less(s.T, s.Servers[0].Count("SET")-before, int64(len(keys))*60)
		a, b := s.take(other, "a", longTTL), s.take(other, "b", longTTL)
		set := s.waitForSet(c, "a", "b")
		next := s.wait(c, "a", longTTL) // in the line behind it
		s.release(a)
		s.inTurn(2*soon, next)
		s.release(b)
		s.inTurn(2*soon, set)
	}},
}
