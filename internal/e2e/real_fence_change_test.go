package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/realredis"
	"github.com/redlock-go/redlock/internal/testkit"
)

// fencedLoad is clients that lock a few keys again and again, through the steps of a change.
type fencedLoad struct {
	*testing.T
	lists [3][2][]string // Nodes and NextNodes in each step

	mu      sync.Mutex
	turn    int
	grants  map[string][]loadGrant
	holders map[string]int
	counts  [3]int // grants by step
	failed  map[string]int
	took    [3][]time.Duration
}

type loadGrant struct {
	token uint64
	at    int
}

func (l *fencedLoad) connect(step int) *redlock.Client {
	c, err := redlock.New(redlock.Config{Nodes: l.lists[step][0], NextNodes: l.lists[step][1], Fenced: true, MaxTTL: loadTTL, Retry: redlock.Retry{Max: 20 * time.Millisecond}})
	require.NoError(l, err)
	return c
}

const loadTTL = time.Second

// run is one client in a step, with some goroutines, until stop is closed.
func (l *fencedLoad) run(c *redlock.Client, step, goroutines int, stop <-chan struct{}) {
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					l.once(c, step)
				}
			}
		})
	}
	all.Wait()
}

func (l *fencedLoad) once(c *redlock.Client, step int) {
	ctx, cancel := context.WithTimeout(l.Context(), 5*loadTTL)
	defer cancel()
	key := fmt.Sprint("k", rand.IntN(40))
	l.mu.Lock()
	l.turn++
	began := l.turn
	l.mu.Unlock()
	start := time.Now()
	lock, err := c.Acquire(ctx, key, loadTTL)
	if err != nil {
		l.mu.Lock()
		l.failed[fmt.Sprintf("step %d: %.80s", step, err)]++
		l.mu.Unlock()
		time.Sleep(10 * time.Millisecond)
		return
	}
	l.mu.Lock()
	l.took[step] = append(l.took[step], time.Since(start))
	l.turn++
	for _, g := range l.grants[key] {
		if g.at < began && g.token >= lock.Fence() {
			assert.Failf(l, "a token that does not grow", "%s: %d after %d", key, lock.Fence(), g.token)
		}
	}
	l.grants[key] = append(l.grants[key], loadGrant{lock.Fence(), l.turn})
	if n := len(l.grants[key]); n > 64 {
		l.grants[key] = slices.Delete(l.grants[key], 0, n-64)
	}
	l.counts[step]++
	if l.holders[key]++; l.holders[key] > 1 {
		assert.Failf(l, "two holders", "%s", key)
	}
	l.mu.Unlock()
	time.Sleep(rand.N(time.Millisecond))
	l.mu.Lock()
	if l.holders[key]--; lock.Remaining() <= 0 {
		l.Logf("a lock of %s ended while it was held", key) // on a machine that stands still
	}
	l.mu.Unlock()
	_ = lock.Release(ctx)
}

// TestRealFencedChange: three nodes become five, and one of three is replaced, under load, while a node
// is killed and comes back: tokens grow, and nothing overlaps.
func TestRealFencedChange(t *testing.T) {
	if !testkit.Long() {
		t.Skip("set REDLOCK_LONG=1")
	}
	for name, to := range map[string][]int{"one of three is replaced": {0, 1, 3}, "three become five": {0, 1, 2, 3, 4}} {
		t.Run(name, func(t *testing.T) {
			servers := realredis.StartN(t, 5)
			some := func(numbers []int) (nodes []string) {
				for _, i := range numbers {
					nodes = append(nodes, servers[i].Addr())
				}
				return nodes
			}
			old, next := some(three), some(to)
			l := &fencedLoad{T: t, grants: map[string][]loadGrant{}, holders: map[string]int{}, failed: map[string]int{},
				lists: [3][2][]string{{old, nil}, {old, next}, {next, nil}}}
			const clients = 4
			first := l.connect(0)
			require.NoError(t, first.InitFencing(t.Context(), 0))
			require.NoError(t, first.Close())

			var stops [clients]chan struct{}
			var ended [clients]sync.WaitGroup
			roll := func(step int) { // one client after another; a new one is there before the old one goes
				for i := range stops {
					c, stop := l.connect(step), make(chan struct{})
					ctx, cancel := context.WithTimeout(t.Context(), 20*loadTTL)
					require.NoError(t, c.Ready(ctx))
					cancel()
					if stops[i] != nil {
						close(stops[i])
						ended[i].Wait()
					}
					stops[i] = stop
					ended[i].Go(func() {
						l.run(c, step, 16, stop)
						_ = c.Close()
					})
				}
			}
			roll(0)
			time.Sleep(2 * loadTTL)
			roll(1)
			time.Sleep(3 * loadTTL) // the new nodes get their vote
			require.NoError(t, servers[2].Kill())
			operator := l.connect(1)
			require.NoError(t, operator.Ready(t.Context()))
			began := time.Now()
			require.NoError(t, operator.InitFencing(t.Context(), 0))
			t.Logf("InitFencing took %v", time.Since(began).Round(time.Millisecond))
			require.NoError(t, operator.Close())
			require.NoError(t, servers[2].Restart())
			roll(2)
			time.Sleep(2 * loadTTL)
			for i := range stops {
				close(stops[i])
				ended[i].Wait()
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			for step, took := range l.took {
				slices.Sort(took)
				require.NotEmpty(t, took)
				t.Logf("step %d: %d grants, p99 %v, longest %v", step, len(took), took[len(took)*99/100].Round(time.Microsecond), took[len(took)-1].Round(time.Millisecond))
			}
			t.Logf("failed: %v", l.failed)
		})
	}
}
