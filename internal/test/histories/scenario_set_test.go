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
	err     error // that ended it
}

type locking func(context.Context) (redlock.Lock, error)

func oneOf(c *redlock.Client, key string) locking {
	return func(ctx context.Context) (redlock.Lock, error) { return c.Acquire(ctx, key, longTTL) }
}

func sharedOf(c *redlock.Client, key string) locking {
	return func(ctx context.Context) (redlock.Lock, error) { return c.AcquireShared(ctx, key, longTTL) }
}

func allOf(c *redlock.Client, keys ...string) locking {
	return func(ctx context.Context) (redlock.Lock, error) { return c.AcquireAll(ctx, longTTL, keys...) }
}

func anyOf(c *redlock.Client, keys ...string) locking {
	return func(ctx context.Context) (redlock.Lock, error) { return c.AcquireAny(ctx, longTTL, keys...) }
}

// serve has one caller lock again and again until ctx ends, and returns its share.
func serve(ctx context.Context, section func() time.Duration, lock locking) (s service) {
	for ctx.Err() == nil {
		began := time.Now()
		l, err := lock(ctx)
		s.longest = max(s.longest, time.Since(began))
		if s.err = err; err != nil {
			return s
		}
		s.grants++
		time.Sleep(section())
		_ = l.Release(context.Background())
	}
	return s
}

type crowd struct {
	*virtual.World
	ctx context.Context
	all sync.WaitGroup
	mu  sync.Mutex // of all shares

	varied bool // each section is half of its length or more, and the first ones do not begin together
}

// gather makes a crowd, and returns when its time is over.
func gather(t *testing.T, nodes int, d time.Duration, begin func(c *crowd)) {
	virtual.Run(t, nodes, func(w *virtual.World) {
		ctx, cancel := context.WithTimeout(w.T.Context(), d)
		defer cancel()
		c := &crowd{World: w, ctx: ctx}
		begin(c)
		c.all.Wait()
	})
}

// join has so many callers serve, and adds their shares.
func (c *crowd) join(callers int, share *service, section time.Duration, lock locking) {
	for i := range callers {
		c.all.Go(func() {
			hold := func() time.Duration { return section }
			if c.varied {
				rng := newRandom(uint64(i), uint64(callers))
				hold = func() time.Duration { return section/2 + rng.N(section/2+1) }
				time.Sleep(rng.N(5 * time.Millisecond))
			}
			got := serve(c.ctx, hold, lock)
			if got.err != nil {
				assert.ErrorIs(c.T, got.err, context.DeadlineExceeded)
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			share.grants += got.grants
			share.longest = max(share.longest, got.longest)
		})
	}
}

func (c *crowd) ready(change ...func(*redlock.Config)) *redlock.Client {
	client := c.Client(change...)
	require.NoError(c.T, client.Ready(c.ctx))
	return client
}

// TestSetsBesideHotKeys: a set gets its turn beside keys in constant demand, and these get theirs.
func TestSetsBesideHotKeys(t *testing.T) {
	d, sections := 30*time.Second, []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond}
	if testkit.Long() {
		d *= 4
	}
	const processes = 4
	for i, n := range []int{2, 4} {
		for j, section := range sections {
			if i+j != 1 && !testkit.Long() { // 2 keys and 50 ms, 4 keys and 20 ms
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
					gather(t, 3, d, func(c *crowd) {
						for range processes {
							client := c.ready()
							for _, key := range keys {
								c.join(2, &callers[beside], section, oneOf(client, key))
							}
						}
						if beside == 1 {
							c.join(1, &set, section, allOf(c.ready(), keys...))
						}
					})
				}
				one = service{grants: callers[1].grants / (2 * processes * n), longest: callers[1].longest}
				t.Logf("%d keys, %v, in %v: the set %d grants, longest wait %v; a caller %d, %v; callers in all %d without it, %d beside, %.2f",
					n, section, d, set.grants, set.longest, one.grants, one.longest,
					callers[0].grants, callers[1].grants, float64(callers[1].grants)/float64(callers[0].grants))
				share := 0.5
				if n > 2 && section < 50*time.Millisecond {
					share = 0.72 // of 20 runs 0.87 to 1.01; 0.26 to 0.61 where no turn is kept
				}
				if n > 2 && section > 100*time.Millisecond { // waiters ask once a second, also for keys kept free by a set
					share = 0.2 // of 40 runs 0.25 to 1.2, most 0.5
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
	t.Parallel()
	const section = 50 * time.Millisecond
	var callers [2]service // without the set, and beside it
	for beside := range 2 {
		gather(t, 3, 20*time.Second, func(c *crowd) {
			_, err := c.Client().Acquire(c.ctx, "held", time.Minute)
			require.NoError(c.T, err)
			for range 4 {
				c.join(2, &callers[beside], section, oneOf(c.Client(), "free"))
			}
			if beside == 1 {
				c.join(1, new(service), section, allOf(c.Client(), "free", "held"))
			}
		})
	}
	t.Log(callers)
	assert.Greater(t, float64(callers[1].grants), 0.85*float64(callers[0].grants))
	assert.LessOrEqual(t, callers[1].longest, callers[0].longest+1200*time.Millisecond)
}

// TestOverlappingSets: many random sets of some keys overlap and share them, and none waits for
// long. Of several runs the best counts: how the sets fall varies.
func TestOverlappingSets(t *testing.T) {
	t.Parallel()
	least := time.Hour
	for run := 0; run < 3 && least > 1300*time.Millisecond; run++ {
		least = min(least, overlap(t))
	}
	assert.LessOrEqual(t, least, 1300*time.Millisecond)
}

// overlap has 20 callers of ten processes lock three of ten keys, and returns the mean of the callers'
// longest waits.
func overlap(t *testing.T) (mean time.Duration) {
	shares := make([]service, 20)
	gather(t, 3, 20*time.Second, func(c *crowd) {
		for p := range len(shares) / 2 {
			client := c.ready()
			for i := range 2 {
				random := rand.New(rand.NewPCG(uint64(p), uint64(i)))
				c.join(1, &shares[2*p+i], 10*time.Millisecond, func(ctx context.Context) (redlock.Lock, error) {
					var some []string
					for _, k := range random.Perm(10)[:3] {
						some = append(some, fmt.Sprint("k", k))
					}
					return client.AcquireAll(ctx, longTTL, some...)
				})
			}
		}
	})
	longest := time.Duration(0)
	for _, s := range shares {
		mean += s.longest / time.Duration(len(shares))
		longest = max(longest, s.longest)
	}
	t.Logf("longest wait %v, of the callers in the mean %v", longest, mean)
	assert.LessOrEqual(t, longest, 3*time.Second)
	return mean
}
