package histories

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// forms is the calls that wait for a lock on "k".
var forms = map[string]func(c *redlock.Client) locking{
	"Acquire":       func(c *redlock.Client) locking { return oneOf(c, "k") },
	"AcquireAll":    func(c *redlock.Client) locking { return allOf(c, "j", "k") },
	"AcquireAny":    func(c *redlock.Client) locking { return anyOf(c, "k") },
	"AcquireShared": func(c *redlock.Client) locking { return sharedOf(c, "k") },
}

// wanteds is scenarios of holders that ask whether others want their lock (Lock.Wanted).
var wanteds = []scenario{
	{"a holder hears of those who wait, in its process and in others", 3, func(s *stage) {
		for _, trip := range []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond} {
			own, other := away(s.World, trip), away(s.World, trip)
			require.NoError(s.T, own.ReadyAll(s.ctx))
			require.NoError(s.T, other.ReadyAll(s.ctx))
			for had, have := range forms {
				for by, want := range forms {
					if had == "AcquireShared" && by == had { // neither wants what the other has
						continue
					}
					for _, c := range []*redlock.Client{own, other} {
						l, err := have(own)(s.ctx)
						require.NoError(s.T, err)
						heard := l.Wanted()
						s.unwanted(heard, 3500*time.Millisecond) // no process is in the queue any more
						w := s.call(s.ctx, want(c))
						within := 3*trip + trip/4 + 12*time.Millisecond // it is refused, enters, and may meet a question
						if had == "AcquireShared" {                     // who has come is asked
							within += trip
						}
						s.hears(heard, within, by+" wants what is had by "+had)
						require.Equal(s.T, heard, l.Wanted())
						s.release(l)
						s.release(s.granted(w))
					}
				}
			}
		}
	}},
	{"a holder asks after others have come", 3, func(s *stage) {
		own, other := s.Client(), s.Client()
		for _, c := range []*redlock.Client{own, other} {
			err := own.Do(s.ctx, "k", longTTL, func(ctx context.Context) error {
				w := s.wait(c, "k", longTTL)
				defer func() { go func() { s.release(s.granted(w)) }() }()
				s.hears(redlock.WantedFrom(ctx), promptly, "")
				return nil
			})
			require.NoError(s.T, err)
			l, err := own.Acquire(s.ctx, "k", longTTL)
			require.NoError(s.T, err)
			s.release(l)
		}
	}},
	// What is no wish is not told: earlier callers, gaps, looks, extensions, calls that try, those who share a lock too.
	{"a holder hears of no others", 3, func(s *stage) {
		own, other := s.Client(), s.Client()
		for range 3 { // it has waited itself, and has a place in the queue
			l := s.take(other, "k", longTTL)
			w := s.wait(own, "k", longTTL)
			s.release(l)
			l = s.granted(w)
			kept, stop := l.KeepAlive(s.ctx)
			_, err := other.TryAcquire(s.ctx, "k", longTTL)
			require.ErrorIs(s.T, err, redlock.ErrTaken)
			s.unwanted(redlock.WantedFrom(kept), time.Minute)
			stop()
			s.release(l)
		}
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); { // looks and gaps are due
			l, err := own.Acquire(s.ctx, "k", longTTL)
			require.NoError(s.T, err)
			s.unwanted(l.Wanted(), 20*time.Millisecond)
			s.release(l)
		}
		l, err := own.AcquireShared(s.ctx, "k", longTTL)
		require.NoError(s.T, err)
		for range 20 {
			for _, c := range []*redlock.Client{own, other} {
				another, err := c.AcquireShared(s.ctx, "k", longTTL)
				require.NoError(s.T, err)
				s.unwanted(l.Wanted(), 100*time.Millisecond)
				s.release(another)
			}
		}
	}},
	{"a holder hears beside faults", 3, func(s *stage) {
		for name, fault := range map[string]func(*fakeredis.Server){
			"pushes are lost": func(node *fakeredis.Server) { node.FaultPushes(fakeredis.PushFault{Drop: 100}) },
			"a flush":         func(node *fakeredis.Server) { node.FlushOther() },
			"connections end": func(node *fakeredis.Server) { node.ResetConns() },
		} {
			own, other := s.Client(), s.Client()
			l := s.take(own, "k", longTTL)
			w := s.wait(other, "k", longTTL) // its nodes are known to push
			s.release(l)
			s.release(s.granted(w))
			l = s.take(own, "k", longTTL)
			heard := l.Wanted()
			s.unwanted(heard, time.Second)
			s.Servers.Each(fault)
			w = s.wait(other, "k", longTTL)
			s.hears(heard, 2200*time.Millisecond, name) // two rounds, where it waits at another node
			s.Servers.Each(func(node *fakeredis.Server) { node.FaultPushes(fakeredis.PushFault{}) })
			s.release(l)
			s.release(s.granted(w))
		}
	}},
	// A listener stands in no queue: those who wait are woken as ever. It is forgotten with its lock.
	{"a holder that listens delays no one", 3, func(s *stage) {
		own, other := s.Client(), s.Client()
		for range 20 {
			l := s.take(own, "k", longTTL)
			heard := l.Wanted()
			w := s.wait(other, "k", longTTL)
			s.hears(heard, promptly, "")
			released := time.Now()
			s.release(l)
			<-w.done
			require.LessOrEqual(s.T, w.ended.Sub(released), promptly)
			s.release(w.lock)
			require.True(s.T, testkit.IsClosed(l.Wanted()) || l.Wanted() == nil)
		}
		time.Sleep(5 * time.Second)
		before := s.commands()
		time.Sleep(5 * time.Second)
		require.Equal(s.T, before, s.commands(), "nodes are asked for a holder that is none")
	}},
}

// unwanted requires that a channel stays open for d.
func (s *stage) unwanted(heard <-chan struct{}, d time.Duration) {
	s.T.Helper()
	select {
	case <-heard:
		require.Fail(s.T, "no other wants the lock")
	case <-time.After(d):
	}
}

// hears requires that a channel is closed within d.
func (s *stage) hears(heard <-chan struct{}, d time.Duration, what string) {
	s.T.Helper()
	began := time.Now()
	select {
	case <-heard:
	case <-time.After(longTTL):
	}
	require.LessOrEqual(s.T, time.Since(began), d, what)
}
