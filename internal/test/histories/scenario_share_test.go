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

// sharers is callers that share a key, and such that want it for themselves.
type sharers struct {
	*stage
	ctx     context.Context
	all     sync.WaitGroup
	readers atomic.Int32 // that have it
	writers atomic.Int32
	mu      sync.Mutex
	waits   map[bool][]time.Duration // shared or not
}

func (s *stage) sharers(d time.Duration) *sharers {
	ctx, cancel := context.WithTimeout(s.ctx, d)
	s.T.Cleanup(cancel)
	return &sharers{stage: s, ctx: ctx, waits: map[bool][]time.Duration{}}
}

// add has n callers of c have the key for half of hold or more, again and again.
func (w *sharers) add(c *redlock.Client, n int, shared bool, hold, think time.Duration) {
	acquire, mine, others := c.Acquire, &w.writers, []*atomic.Int32{&w.readers, &w.writers}
	if shared {
		acquire, mine, others = c.AcquireShared, &w.readers, others[1:]
	}
	for i := range n {
		w.all.Go(func() {
			rng := newRandom(uint64(i), uint64(n))
			time.Sleep(rng.N(5 * time.Millisecond))
			for w.ctx.Err() == nil {
				began := time.Now()
				l, err := acquire(w.ctx, "k", longTTL)
				waited := time.Since(began)
				w.mu.Lock()
				w.waits[shared] = append(w.waits[shared], waited)
				w.mu.Unlock()
				if err != nil {
					require.ErrorIs(w.T, err, context.DeadlineExceeded)
					return
				}
				for _, one := range others {
					require.Zero(w.T, one.Load(), "shared %v", shared)
				}
				mine.Add(1)
				time.Sleep(hold/2 + rng.N(hold/2+1))
				mine.Add(-1)
				require.NoError(w.T, l.Release(context.WithoutCancel(w.ctx)))
				time.Sleep(think)
			}
		})
	}
}

// longest waits for all, and returns how long those who share the key have waited at most, and the others.
func (w *sharers) longest() (shared, other time.Duration) {
	w.all.Wait()
	p99 := func(d []time.Duration) time.Duration {
		if len(d) == 0 {
			return 0
		}
		slices.Sort(d)
		return d[len(d)*99/100]
	}
	for _, d := range w.waits {
		slices.Sort(d)
	}
	shared, other = slices.Max(append(w.waits[true], 0)), slices.Max(append(w.waits[false], 0))
	w.T.Logf("shared %d: p99 %v, longest %v; exclusive %d: p99 %v, longest %v", len(w.waits[true]), p99(w.waits[true]), shared, len(w.waits[false]), p99(w.waits[false]), other)
	return shared, other
}

var shares = []scenario{
	{"a writer beside steady readers", 3, func(s *stage) {
		for _, hold := range []time.Duration{time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
			for _, n := range []int{4, 64} {
				w := s.sharers(500*time.Millisecond + 10*hold)
				w.add(s.Client(), n, true, hold, 0)
				w.add(s.Client(), n, true, hold, 0)
				w.add(s.Client(), 1, false, time.Millisecond, 0)
				_, waited := w.longest()
				require.Less(s.T, waited, 3*hold+50*time.Millisecond)
			}
		}
	}},
	{"a reader beside eight steady writers", 3, func(s *stage) {
		w := s.sharers(2 * time.Second)
		for range 8 {
			w.add(s.Client(), 1, false, 5*time.Millisecond, 0)
		}
		w.add(s.Client(), 4, true, 5*time.Millisecond, 0)
		w.add(s.Client(), 4, true, 5*time.Millisecond, 0)
		waited, _ := w.longest()
		require.Less(s.T, waited, time.Second)
	}},
	{"a reader beside a writer, or calls of Do, that were never refused", 3, func(s *stage) {
		for _, do := range []bool{false, true} {
			w := s.sharers(2 * time.Second)
			if c := s.Client(); do {
				w.all.Go(func() {
					for w.ctx.Err() == nil {
						_ = c.Do(w.ctx, "k", longTTL, func(context.Context) error { time.Sleep(time.Millisecond); return nil })
					}
				})
			} else {
				w.add(c, 1, false, 5*time.Millisecond, 0)
			}
			time.Sleep(100 * time.Millisecond)
			w.add(s.Client(), 1, true, time.Millisecond, 0)
			w.add(s.Client(), 1, true, time.Millisecond, 0)
			waited, _ := w.longest()
			require.Less(s.T, waited, time.Second, "Do: %v", do)
		}
	}},
	// Releases that no caller waits for may be sent with the next acquire of the key, which then is free at no time.
	{"others beside ReleaseAsync and the next call", 3, func(s *stage) {
		s.besideReleases(1, func(ctx context.Context, c *redlock.Client, key string) {
			l, err := c.Acquire(ctx, key, longTTL)
			time.Sleep(time.Millisecond)
			if err == nil {
				l.ReleaseAsync()
			}
		})
	}},
	{"others beside calls of Do of a busy process", 3, func(s *stage) {
		s.besideReleases(64, func(ctx context.Context, c *redlock.Client, key string) {
			_ = c.Do(ctx, key, longTTL, func(context.Context) error { time.Sleep(time.Millisecond); return nil })
		})
	}},
	{"others beside calls of DoAll of a busy process", 3, func(s *stage) {
		s.besideReleases(16, func(ctx context.Context, c *redlock.Client, key string) {
			_ = c.DoAll(ctx, longTTL, []string{key, "also " + key}, func(context.Context) error { time.Sleep(time.Millisecond); return nil })
		})
	}},
	// A gap is for callers of its own process too.
	{"a poller in the process of steady readers", 3, func(s *stage) {
		w := s.sharers(7 * time.Second)
		c := s.Client()
		w.add(c, 16, true, 20*time.Millisecond, 0)
		time.Sleep(100 * time.Millisecond)
		began, rng := time.Now(), newRandom(1, 2)
		for time.Since(began) < 6*time.Second {
			l, err := c.TryAcquire(s.ctx, "k", longTTL)
			if err == nil {
				s.release(l)
				break
			}
			time.Sleep(50*time.Millisecond + rng.N(200*time.Millisecond))
		}
		require.Less(s.T, time.Since(began), 5*time.Second)
		w.longest()
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
		var readers []redlock.Lock
		for range 8 {
			l, err := c.AcquireShared(s.ctx, "k", longTTL)
			require.NoError(s.T, err)
			readers = append(readers, l)
		}
		writer := s.wait(c, "k", longTTL)
		for _, l := range readers {
			time.Sleep(20 * time.Millisecond)
			s.release(l)
		}
		s.inTurn(promptly, writer)
		require.LessOrEqual(s.T, refused.Load(), int32(2))
	}},
	{"readers and writers of the same processes", 3, func(s *stage) {
		w := s.sharers(2 * time.Second)
		for range 4 {
			c := s.Client()
			w.add(c, 16, true, 20*time.Millisecond, 0)
			w.add(c, 1, false, 5*time.Millisecond, 0)
		}
		shared, other := w.longest()
		require.Less(s.T, shared, time.Second)
		require.Less(s.T, other, time.Second)
	}},
}

// besideReleases requires that callers of other processes get the keys that so many callers of a process have again and
// again, by use, each another one: one of the keys, and all of them at once. All keys of a process share 50 looks a second, so
// those of 64 callers with two keys each would be late by more than a second.
func (s *stage) besideReleases(callers int, use func(ctx context.Context, c *redlock.Client, key string)) {
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
				use(ctx, c, fmt.Sprint("k", i))
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
func (w *sharers) foreigner() time.Duration {
	peers := newPeers(w.World, "foreigner")
	defer closeAll(peers)
	began, rng := time.Now(), newRandom(1, 2)
	for try := 0; ; try++ {
		value := fmt.Sprint("foreign", try)
		_, won := acquire(peers, "k", value)
		if won {
			require.Zero(w.T, w.readers.Load())
		}
		release(peers, "k", value)
		if won || time.Since(began) > longTTL {
			return time.Since(began)
		}
		time.Sleep(50*time.Millisecond + rng.N(200*time.Millisecond))
	}
}
