package histories

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// service is some callers' share: the number of locks, and the longest wait of one.
type service struct {
	grants  int
	longest time.Duration
}

// add adds another caller's share.
func (s *service) add(mu *sync.Mutex, got service) {
	mu.Lock()
	defer mu.Unlock()
	s.grants += got.grants
	s.longest = max(s.longest, got.longest)
}

// serve has one caller lock keys again and again until ctx ends, and returns its share.
func serve(ctx context.Context, c *redlock.Client, section time.Duration, keys ...string) service {
	return serveBy(ctx, section, func() (redlock.Lock, error) { return c.AcquireAll(ctx, longTTL, keys...) })
}

// serveBy is serve with a way to lock.
func serveBy(ctx context.Context, section time.Duration, acquire func() (redlock.Lock, error)) (s service) {
	for ctx.Err() == nil {
		began := time.Now()
		l, err := acquire()
		s.longest = max(s.longest, time.Since(began))
		if err != nil {
			return s
		}
		s.grants++
		time.Sleep(section)
		_ = l.Release(context.Background())
	}
	return s
}

// TestSetsBesideHotKeys: a set gets its turn beside keys in constant demand, and these get theirs.
func TestSetsBesideHotKeys(t *testing.T) {
	d, sections := 30*time.Second, []time.Duration{50 * time.Millisecond, 150 * time.Millisecond}
	if testkit.Long() {
		d, sections = 4*d, append(sections, 20*time.Millisecond)
	}
	const processes = 4
	for i, n := range []int{2, 4} {
		for j, section := range sections {
			if i != j && !testkit.Long() {
				continue
			}
			t.Run(fmt.Sprint(n, " keys, ", section), func(t *testing.T) {
				t.Parallel()
				var keys []string
				for i := range n {
					keys = append(keys, fmt.Sprint("k", i))
				}
				var set, one service   // of the set, and of a caller of one key beside it
				var callers [2]service // of single keys: without the set, and beside it
				for beside := range 2 {
					virtual.Run(t, 3, func(w *virtual.World) {
						ctx, cancel := context.WithTimeout(w.T.Context(), d)
						defer cancel()
						var all sync.WaitGroup
						var mu sync.Mutex
						for range processes {
							c := w.Client()
							require.NoError(w.T, c.Ready(ctx))
							for i := range 2 * n {
								all.Go(func() {
									callers[beside].add(&mu, serve(ctx, c, section, keys[i/2]))
								})
							}
						}
						if beside == 1 {
							c := w.Client()
							require.NoError(w.T, c.Ready(ctx))
							all.Go(func() { set = serve(ctx, c, section, keys...) })
						}
						all.Wait()
					})
				}
				one = service{callers[1].grants / (2 * processes * n), callers[1].longest}
				t.Logf("%d keys, %v, in %v: the set %d grants, longest wait %v; a caller %d, %v; callers in all %d without it, %d beside, %.2f",
					n, section, d, set.grants, set.longest, one.grants, one.longest,
					callers[0].grants, callers[1].grants, float64(callers[1].grants)/float64(callers[0].grants))
				share := 0.5
				if n > 2 && section > 100*time.Millisecond { // waiters ask once a second, also for keys kept free by a set
					share = 0.4
				}
				assert.Greater(t, float64(set.grants), share*float64(one.grants))
				assert.LessOrEqual(t, set.longest, 10*one.longest)
				assert.Greater(t, float64(callers[1].grants), 0.6*float64(callers[0].grants))
			})
		}
	}
}

// TestSetBesideHeldKey: a set waiting for a key held for long keeps its turn for another one once,
// not again and again.
func TestSetBesideHeldKey(t *testing.T) {
	sections := []time.Duration{50 * time.Millisecond}
	if testkit.Long() {
		sections = append(sections, 10*time.Millisecond, time.Millisecond)
	}
	for _, section := range sections {
		t.Run(fmt.Sprint(section), func(t *testing.T) {
			t.Parallel()
			var callers [2]service // without the set, and beside it
			for beside := range 2 {
				virtual.Run(t, 3, func(w *virtual.World) {
					ctx, cancel := context.WithTimeout(w.T.Context(), 20*time.Second)
					defer cancel()
					_, err := w.Client().Acquire(ctx, "held", time.Minute)
					require.NoError(w.T, err)
					var all sync.WaitGroup
					var mu sync.Mutex
					for range 4 {
						c := w.Client()
						for range 2 {
							all.Go(func() { callers[beside].add(&mu, serve(ctx, c, section, "free")) })
						}
					}
					if beside == 1 {
						c := w.Client()
						all.Go(func() { serve(ctx, c, section, "free", "held") })
					}
					all.Wait()
				})
			}
			t.Log(section, callers)
			assert.Greater(t, float64(callers[1].grants), 0.85*float64(callers[0].grants))
			assert.LessOrEqual(t, callers[1].longest, callers[0].longest+1200*time.Millisecond)
		})
	}
}

// TestOverlappingSets: many random sets of some keys overlap and share them, and none waits for
// long. Of several runs the best counts: how the sets fall varies.
func TestOverlappingSets(t *testing.T) {
	for _, n := range []int{3, 2} {
		if n < 3 && !testkit.Long() {
			continue
		}
		t.Run(fmt.Sprint(n, " of 10"), func(t *testing.T) {
			t.Parallel()
			least := time.Hour
			for run := 0; run < 3 && least > 1300*time.Millisecond; run++ {
				least = min(least, overlap(t, n))
			}
			assert.LessOrEqual(t, least, 1300*time.Millisecond)
		})
	}
}

// overlap has 20 callers of ten processes lock n of ten keys, and returns the mean of the callers'
// longest waits.
func overlap(t *testing.T, n int) (mean time.Duration) {
	shares := make([]service, 20)
	virtual.Run(t, 3, func(w *virtual.World) {
		ctx, cancel := context.WithTimeout(w.T.Context(), 10*time.Second)
		defer cancel()
		var all sync.WaitGroup
		for p := range len(shares) / 2 {
			c := w.Client()
			require.NoError(w.T, c.Ready(ctx))
			for i := range 2 {
				random := rand.New(rand.NewPCG(uint64(p), uint64(i)))
				all.Go(func() {
					shares[2*p+i] = serveBy(ctx, 10*time.Millisecond, func() (redlock.Lock, error) {
						var some []string
						for _, k := range random.Perm(10)[:n] {
							some = append(some, fmt.Sprint("k", k))
						}
						return c.AcquireAll(ctx, longTTL, some...)
					})
				})
			}
		}
		all.Wait()
	})
	longest := time.Duration(0)
	for _, s := range shares {
		mean += s.longest / time.Duration(len(shares))
		longest = max(longest, s.longest)
	}
	t.Logf("%d of 10 keys: longest wait %v, of the callers in the mean %v", n, longest, mean)
	assert.LessOrEqual(t, longest, 3*time.Second)
	return mean
}
