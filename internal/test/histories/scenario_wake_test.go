package histories

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

// Moments at which something may come between the steps of a waiter.
const (
	moments      = 3 * time.Millisecond
	betweenSteps = 50 * time.Microsecond
)

var wakes = []scenario{
	// A release is not missed at any step of getting in line.
	{"released at any moment", 3, func(s *stage) {
		for _, late := range []bool{false, true} { // their pushes come with earlier replies
			m := s.Machine()
			a := s.Client()
			b, _ := s.ClientOn(m)
			for d := time.Duration(0); d < moments; d += betweenSteps {
				key := fmt.Sprint(late, d)
				held := s.take(a, key, longTTL)
				w := s.begin(s.ctx, b, key, longTTL)
				time.Sleep(d)
				for _, node := range s.Nodes {
					if late {
						m.Link(node).Hold(false, true)
						time.AfterFunc(time.Millisecond, m.Link(node).Release)
					}
				}
				s.release(held)
				s.inTurn(promptly, w)
			}
		}
	}},
	// A caller that gives up leaves no place for others to wait for.
	{"given up at any moment", 3, func(s *stage) {
		a, b, c := s.Client(), s.Client(), s.Client()
		for d := time.Duration(0); d < moments; d += betweenSteps {
			key := fmt.Sprint("after ", d)
			held := s.take(a, key, longTTL)
			ctx, cancel := context.WithCancel(s.ctx)
			first := s.begin(ctx, b, key, longTTL)
			time.Sleep(betweenSteps)
			var next []*waiting
			if d/betweenSteps%2 == 0 {
				next = append(next, s.begin(s.ctx, b, key, longTTL))
			}
			time.Sleep(d)
			cancel()
			<-first.done
			require.Error(s.T, first.err)
			next = append(next, s.wait(c, key, longTTL))
			s.release(held)
			s.inTurn(promptly, next...)
		}
	}},
	// Each process leaves the queue, or its place in front, after its turn.
	{"one process after the other", 5, func(s *stage) {
		held := s.take(s.Client(), "k", longTTL)
		var all []*waiting
		for range 5 {
			all = append(all, s.wait(s.Client(), "k", longTTL))
		}
		s.release(held)
		s.inTurn(promptly, all...)
	}},
	{"closed in the queue", 3, func(s *stage) {
		held, b := s.take(s.Client(), "k", longTTL), s.Client()
		first := s.wait(b, "k", longTTL)
		next := s.wait(s.Client(), "k", longTTL)
		closed := time.Now()
		require.NoError(s.T, b.Close())
		<-first.done
		require.LessOrEqual(s.T, time.Since(closed), promptly)
		s.release(held)
		s.inTurn(promptly, next)
	}},
	// A closed client leaves no key in the queue, at any step of its waiter.
	{"closed at any moment", 3, func(s *stage) {
		a := s.Client()
		for d := time.Duration(0); d < moments; d += betweenSteps {
			key := fmt.Sprint("after ", d)
			held, b := s.take(a, key, longTTL), s.Client()
			w := s.begin(s.ctx, b, key, longTTL)
			time.Sleep(d)
			require.NoError(s.T, b.Close())
			<-w.done
			require.ErrorIs(s.T, w.err, redlock.ErrClosed)
			time.Sleep(time.Millisecond)
			for _, node := range s.Servers {
				require.NotContains(s.T, node.Keys(), key+":redlock:queue")
			}
			s.release(held)
		}
	}},
	// A node does not push a client's own deletions, here of the key of a refused set.
	{"refused beside a line", 3, func(s *stage) {
		m := s.Machine()
		c, _ := s.ClientOn(m, func(c *redlock.Config) { c.NodeTimeout = time.Second })
		for i, node := range s.Nodes { // the last to deny the other key
			key := fmt.Sprint("k", i)
			s.Servers.Take("other")
			m.Link(node).Delay(50*time.Millisecond, 50*time.Millisecond, 0)
			refused := make(chan error)
			go func() {
				_, err := c.TryAcquireAll(s.ctx, longTTL, key, "other")
				refused <- err
			}()
			time.Sleep(time.Millisecond)
			w := s.begin(s.ctx, c, key, longTTL)
			require.ErrorIs(s.T, <-refused, redlock.ErrTaken)
			require.True(s.T, w.waits())
			s.inTurn(250*time.Millisecond, w)
			m.Link(node).Delay(100*time.Microsecond, 100*time.Microsecond, 0)
			s.Servers.Del("other")
		}
	}},
	// The nodes are asked now and then, in case a push was lost; and this costs a waiter nothing.
	{"pushes are lost", 3, func(s *stage) {
		held, c := s.take(s.Client(), "k", longTTL), s.Client()
		first, next := s.wait(c, "k", longTTL), s.wait(c, "k", longTTL)
		s.Servers.Each(func(node *fakeredis.Server) { node.FaultPushes(fakeredis.PushFault{Drop: 1}) })
		s.release(held)
		from := time.Now()
		s.granted(first)
		require.LessOrEqual(s.T, first.ended.Sub(from), 1100*time.Millisecond)
		s.Servers.Del("k") // its process believes in it
		s.inTurn(1600*time.Millisecond, next)
	}},
}
