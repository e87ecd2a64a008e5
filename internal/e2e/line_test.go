package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/testkit"
	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// TestFirstComeFirstServed: waiters of a process have the lock in the order in which they
// came, without a round trip for each.
func TestFirstComeFirstServed(t *testing.T) {
	r := cluster.New(t, 3)
	held := cluster.MustAcquire(t, r.Client, "k", ttl)
	const n = 20
	var order []int
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n {
		all.Add(1)
		go func() {
			defer all.Done()
			l, err := r.Acquire(t.Context(), "k", ttl)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			if err := l.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		testkit.Await(t, "in line", func() bool { return r.Stats().InLine == i+1 })
	}
	_, err := r.TryAcquire(t.Context(), "k", ttl)
	require.Equal(t, redlock.ErrTaken, err)
	before := r.Stats().Acquire.Won
	require.NoError(t, held.Release(t.Context()))
	testkit.Join(t, &all)
	for i := range n {
		require.Equal(t, i, order[i])
	}
	s := cluster.Settle(t, r.Client)
	require.EqualValues(t, n, s.HandedOver)
	require.Equal(t, before, s.Acquire.Won, "no round trip")
	require.Zero(t, s.InLine)
	r.AwaitEmpty(t)
}

// TestHandOverExcludes: of many that want a key one has it at a time, whatever they do
// with it: they give up, release twice, extend, keep it alive, leave it to expire.
func TestHandOverExcludes(t *testing.T) {
	for _, off := range []bool{false, true} {
		t.Run(fmt.Sprint("off ", off), func(t *testing.T) {
			r := cluster.New(t, 3, func(c *redlock.Config) { c.NoHandOver = off })
			var inside, grants atomic.Int64
			var all sync.WaitGroup
			for i := range 16 {
				all.Add(1)
				go func() {
					defer all.Done()
					for j := range 30 {
						ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(i*7+j*13)%40)*10*time.Millisecond)
						l, err := r.Acquire(ctx, "k", ttl)
						cancel()
						if err != nil {
							continue
						}
						if inside.Add(1) != 1 {
							t.Error("two holders")
						}
						grants.Add(1)
						switch j % 5 {
						case 0:
							_ = l.Extend(t.Context(), ttl)
						case 1:
							_, stop := l.KeepAlive(t.Context())
							defer stop()
						case 2:
							_ = l.Token()
						}
						inside.Add(-1)
						if j%2 == 0 {
							l.ReleaseAsync()
						} else if err := l.Release(t.Context()); err != nil {
							t.Error(err)
						}
						if l.Release(t.Context()) != redlock.ErrNotHeld {
							t.Error("released twice")
						}
					}
				}()
			}
			testkit.Join(t, &all)
			s := cluster.Settle(t, r.Client)
			require.Zero(t, s.InLine)
			require.Equal(t, off, s.HandedOver == 0)
			require.Greater(t, grants.Load(), int64(100))
			r.AwaitEmpty(t)
		})
	}
}
