package histories

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
)

// turns are scenarios of callers outside the queue, beside four in constant demand of the lock.
var turns = []scenario{
	{"several keys beside a line", 5, func(s *stage) { s.outside(s.by(allOf(s.Client(), "k", "other"))) }},
	{"several keys in the process of the line", 5, func(s *stage) {
		c := s.Client()
		s.outside(s.by(allOf(c, "k", "other")), c)
	}},
	// The queue of a client with other names for the nodes lies on another node.
	{"nodes by other names beside a line", 5, func(s *stage) {
		dial := s.Net.Dialer("elsewhere")
		const prefix = "other-"
		c, _ := s.ClientOn(s.Machine(), func(c *redlock.Config) {
			c.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				return dial(ctx, network, strings.TrimPrefix(addr, prefix))
			}
			c.Nodes = nil
			for _, node := range s.Nodes {
				c.Nodes = append(c.Nodes, prefix+node)
			}
		})
		held := s.take(s.Client(), "k", longTTL)
		w, elsewhere := s.wait(s.Client(), "k", longTTL), s.wait(c, "k", longTTL)
		require.Len(s.T, queues(s.World, "k"), 2, "both stand in one queue")
		s.release(held)
		s.inTurn(soon, w, elsewhere)
		s.outside(s.by(oneOf(c, "k")))
	}},
	{"no pushes beside a line", 5, func(s *stage) { s.outside(s.by(oneOf(s.polling(), "k"))) }},
}

func (s *stage) by(lock locking) func(context.Context, int) bool {
	return func(ctx context.Context, _ int) bool {
		l, err := lock(ctx)
		if err == nil {
			s.release(l)
		}
		return err == nil
	}
}

func (s *stage) polls(c *redlock.Client) func(context.Context, int) bool {
	return s.by(func(ctx context.Context) (redlock.Lock, error) {
		time.Sleep(5 * time.Millisecond)
		return c.TryAcquire(ctx, "k", longTTL)
	})
}

// turn bounds the wait of a caller outside the queue: two intervals and a gap, since another may
// take the lock in the first.
const turn = 6500 * time.Millisecond

// section is how long a line holds a lock.
const section = 10 * time.Millisecond

// outside requires that try, called again and again beside four callers of each client, of one without any, succeeds often
// enough.
func (s *stage) outside(try func(ctx context.Context, turn int) bool, clients ...*redlock.Client) {
	s.T.Helper()
	if len(clients) == 0 {
		clients = append(clients, s.Client())
	}
	ctx, cancel := context.WithTimeout(s.ctx, turn+time.Second)
	defer cancel()
	busy := s.busy(ctx, 4, section, clients...)
	last, longest := time.Now(), time.Duration(0)
	for n := 0; ctx.Err() == nil; n++ {
		won := try(ctx, n)
		longest = max(longest, time.Since(last))
		if won {
			last = time.Now()
		}
	}
	<-busy
	s.T.Log("longest wait outside:", longest)
	require.LessOrEqual(s.T, longest, turn)
}

// busy has so many callers of each client lock a key until ctx ends, and then sends the number of their
// locks.
func (s *stage) busy(ctx context.Context, callers int, hold time.Duration, clients ...*redlock.Client) <-chan int {
	locks := make(chan int, 1)
	crowd := &crowd{World: s.World, ctx: ctx}
	var all service
	for _, c := range clients {
		crowd.join(callers, &all, hold, oneOf(c, "k"))
	}
	go func() {
		crowd.all.Wait()
		locks <- all.grants
	}()
	return locks
}

// gaps are scenarios of when a lock is left free for clients outside the queue, and when not.
var gaps = []scenario{
	// A process that polls believes in its own holder while the handle is live. Another one has the token, and frees the
	// lock: the first learns of it when the validity is over, or asks within 1.05 s. Then it may leave the gap that is due.
	{"gap after a lock that another process has freed", 3, func(s *stage) {
		s.Servers.Deny("CLIENT|TRACKING")
		var longest time.Duration
		for _, ttl := range []time.Duration{300 * time.Millisecond, 600 * time.Millisecond, 900 * time.Millisecond, 2 * time.Second} {
			c, other := s.Client(), s.Client()
			for range 8 {
				held := s.take(other, "k", longTTL)
				first := s.begin(s.ctx, c, "k", ttl)
				time.Sleep(400 * time.Millisecond) // c waits for its turn, and knows a rival
				s.release(held)
				l := s.granted(first)
				next := s.begin(s.ctx, c, "k", longTTL)
				time.Sleep(60 * time.Millisecond) // its turn is over
				attached, err := other.Attach(s.ctx, "k", l.Token(), time.Now().Add(l.Remaining()))
				require.NoError(s.T, err)
				s.release(attached)
				from := time.Now()
				l = s.granted(next)
				longest = max(longest, next.ended.Sub(from))
				s.release(l)
			}
			require.NoError(s.T, c.Close())
			require.NoError(s.T, other.Close())
		}
		s.T.Logf("free and wanted for %v", longest)
		require.LessOrEqual(s.T, longest, aloneFor+longestGap)
	}},
	{"gaps of one process", 3, func(s *stage) { s.leavesGaps(s.Client()) }},
	{"gaps of three processes", 3, func(s *stage) { s.leavesGaps(s.Client(), s.Client(), s.Client()) }},
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
		s.outside(s.polls(c), c)
	}},
	{"poller beside a line without hand-over", 3, func(s *stage) {
		s.outside(s.polls(s.Client()), s.Client(func(c *redlock.Config) { c.NoHandOver = true }))
	}},
}

// leavesGaps requires that processes in constant demand of a lock leave it free often enough, and
// no more often than that.
func (s *stage) leavesGaps(clients ...*redlock.Client) {
	const long = 12 * time.Second
	ctx, cancel := context.WithTimeout(s.ctx, long)
	defer cancel()
	busy := s.busy(ctx, 4, section, clients...)
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
