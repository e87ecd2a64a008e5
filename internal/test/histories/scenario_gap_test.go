package histories

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
)

// gaps are scenarios of when a lock is left free for clients outside the queue, and when not.
var gaps = []scenario{
	{"gaps of one process", 3, func(s *stage) { s.leavesGaps(section, s.Client()) }},
	{"gaps of long holds", 3, func(s *stage) { s.leavesGaps(30*time.Millisecond, s.Client()) }},
	{"gaps of three processes", 3, func(s *stage) { s.leavesGaps(section, s.Client(), s.Client(), s.Client()) }},
	// A lock free a moment ago is not left free again.
	{"no gap behind a rest", 3, func(s *stage) {
		c := s.Client()
		for range 20 {
			began := time.Now()
			var all sync.WaitGroup
			for range 10 {
				all.Go(func() {
					l, err := c.Acquire(s.ctx, "k", longTTL)
					require.NoError(s.T, err)
					s.release(l)
				})
			}
			all.Wait()
			require.Less(s.T, time.Since(began), 10*promptly)
			time.Sleep(time.Second)
		}
	}},
	{"poller in the process of the line", 3, func(s *stage) {
		c := s.Client()
		s.polls(c, section, c)
	}},
	{"poller beside a line without hand-over", 3, func(s *stage) {
		s.polls(s.Client(), section, s.Client(func(c *redlock.Config) { c.NoHandOver = true }))
	}},
	{"poller beside several processes", 3, func(s *stage) {
		s.polls(s.Client(), section, s.Client(), s.Client(), s.Client())
	}},
}

// polls requires that a poller has its turns beside goroutines of clients.
func (s *stage) polls(c *redlock.Client, hold time.Duration, busy ...*redlock.Client) {
	s.outsideOf(func(ctx context.Context, _ int) bool {
		time.Sleep(5 * time.Millisecond)
		l, err := c.TryAcquire(ctx, "k", longTTL)
		if err == nil {
			s.release(l)
		}
		return err == nil
	}, hold, busy...)
}

// leavesGaps requires that processes in constant demand of a lock leave it free often enough, and
// no more often than that.
func (s *stage) leavesGaps(hold time.Duration, clients ...*redlock.Client) {
	const long = 12 * time.Second
	ctx, cancel := context.WithTimeout(s.ctx, long)
	defer cancel()
	busy := s.busy(ctx, new(atomic.Int64), 4, hold, clients...)
	var free, longest time.Duration // in gaps, and between two
	last, began := time.Now(), time.Now()
	for ctx.Err() == nil {
		time.Sleep(time.Millisecond)
		if s.Holders("k") > 0 {
			if gap := time.Since(began); gap > 250*time.Millisecond {
				free, longest, last = free+gap, max(longest, began.Sub(last)), time.Now()
			}
			began = time.Now()
		}
	}
	<-busy
	require.LessOrEqual(s.T, max(longest, time.Since(last)), 3*time.Second)
	require.LessOrEqual(s.T, free, long/10)
}
