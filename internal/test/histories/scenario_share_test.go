package histories

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// varied is a crowd in which sections vary.
func (s *stage) varied(d time.Duration) *crowd {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	s.T.Cleanup(cancel)
	return &crowd{World: s.World, ctx: ctx, varied: true}
}

var shares = []scenario{
	{"a writer beside steady readers", 3, func(s *stage) {
		for _, hold := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
			for _, n := range []int{4, 64} {
				var writer service
				c := s.varied(500*time.Millisecond + 10*hold)
				c.join(n, new(service), hold, sharedOf(s.Client(), "k"))
				c.join(n, new(service), hold, sharedOf(s.Client(), "k"))
				c.join(1, &writer, time.Millisecond, oneOf(s.Client(), "k"))
				c.all.Wait()
				require.Less(s.T, writer.longest, 3*hold+50*time.Millisecond)
			}
		}
	}},
	{"a reader beside eight steady writers", 3, func(s *stage) {
		var readers service
		c := s.varied(2 * time.Second)
		for range 8 {
			c.join(1, new(service), 5*time.Millisecond, oneOf(s.Client(), "k"))
		}
		c.join(4, &readers, 5*time.Millisecond, sharedOf(s.Client(), "k"))
		c.join(4, &readers, 5*time.Millisecond, sharedOf(s.Client(), "k"))
		c.all.Wait()
		require.Less(s.T, readers.longest, time.Second)
	}},
	// Releases that no caller waits for may be sent with the next acquire of the key, which then is free at no time.
	{"others beside Release and the next call", 3, func(s *stage) { s.besideReleases(1, uses["Release"]) }},
	{"others beside ReleaseAsync and the next call", 3, func(s *stage) { s.besideReleases(1, uses["ReleaseAsync"]) }},
	{"others beside calls of Do of a busy process", 3, func(s *stage) { s.besideReleases(64, uses["Do"]) }},
	{"others beside calls of DoAll of a busy process", 3, func(s *stage) { s.besideReleases(16, uses["DoAll"]) }},
	// A gap is for callers of its own process too.
	{"a poller in the process of steady readers", 3, func(s *stage) {
		crowd, c := s.varied(7*time.Second), s.Client()
		crowd.join(16, new(service), 20*time.Millisecond, sharedOf(c, "k"))
		time.Sleep(100 * time.Millisecond)
		waited := polled(func() bool {
			l, err := c.TryAcquire(s.ctx, "k", longTTL)
			return err == nil && l.Release(s.ctx) == nil
		})
		require.Less(s.T, waited, 5*time.Second)
		crowd.all.Wait()
	}},
	// Each of them that leaves changes the key: the writer looks at it, and asks for the lock once it is free.
	{"a writer beside readers of its process", 3, func(s *stage) {
		var refused atomic.Int32
		c := s.Client(func(c *redlock.Config) {
			c.Hooks.Attempt = func(a redlock.Attempt) {
				if a.Err != nil {
					refused.Add(1)
				}
			}
		})
		held := s.take(c, "k", longTTL)
		var readers []*waiting
		for range 8 {
			readers = append(readers, s.call(s.ctx, sharedOf(c, "k")))
			time.Sleep(time.Millisecond)
		}
		writer := s.wait(c, "k", longTTL)
		s.release(held)
		time.Sleep(promptly)
		for _, r := range slices.Backward(readers) { // the youngest grant comes first
			l := s.granted(r)
			l.ReleaseAsync()
			time.Sleep(promptly)
		}
		s.inTurn(promptly, writer)
		require.LessOrEqual(s.T, refused.Load(), int32(2))
	}},
	{"readers and writers of the same processes", 3, func(s *stage) {
		var readers, writers service
		crowd := s.varied(2 * time.Second)
		for range 4 {
			c := s.Client()
			crowd.join(16, &readers, 20*time.Millisecond, sharedOf(c, "k"))
			crowd.join(1, &writers, 5*time.Millisecond, oneOf(c, "k"))
		}
		crowd.all.Wait()
		require.Less(s.T, max(readers.longest, writers.longest), time.Second)
	}},
}

// besideReleases requires that callers of other processes get the keys that so many callers of a process have again and
// again, by f, each another one: one of the keys, and all of them at once. All keys of a process share 50 looks a second, so
// those of 64 callers with two keys each would be late by more than a second.
func (s *stage) besideReleases(callers int, f use) {
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	if testkit.Race {
		callers = (callers + 3) / 4
	}
	c := s.Client()
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			for ctx.Err() == nil {
				f(ctx, c, fmt.Sprint("k", i), func() { time.Sleep(time.Millisecond) })
			}
		})
	}
	time.Sleep(100 * time.Millisecond)
	one, another := s.Client(), s.Client()
	for range 2 {
		for _, acquire := range []func(context.Context, string, time.Duration) (redlock.Lock, error){one.Acquire, another.AcquireShared} {
			began := time.Now()
			l, err := acquire(ctx, "k0", longTTL)
			require.NoError(s.T, err)
			require.Less(s.T, time.Since(began), soon)
			s.release(l)
			time.Sleep(300 * time.Millisecond)
		}
	}
	var others sync.WaitGroup
	for i := range callers {
		others.Go(func() {
			began := time.Now()
			l, err := one.Acquire(ctx, fmt.Sprint("k", i), longTTL)
			assert.NoError(s.T, err)
			assert.Less(s.T, time.Since(began), soon)
			assert.NoError(s.T, l.Release(ctx))
		})
	}
	others.Wait()
	cancel()
	all.Wait()
}

// foreigner polls as another library does, until it has the key, and returns how long that took.
func (s *stage) foreigner() time.Duration {
	peers := newPeers(s.World, "foreigner")
	defer closeAll(peers)
	try := 0
	return polled(func() bool {
		try++
		value := fmt.Sprint("foreign", try)
		defer release(peers, "k", value)
		_, won := acquire(peers, "k", value)
		return won
	})
}

// polled tries with pauses until it has won, and returns how long that took.
func polled(try func() (won bool)) time.Duration {
	began, rng := time.Now(), newRandom(1, 2)
	for !try() && time.Since(began) < longTTL {
		time.Sleep(50*time.Millisecond + rng.N(200*time.Millisecond))
	}
	return time.Since(began)
}
