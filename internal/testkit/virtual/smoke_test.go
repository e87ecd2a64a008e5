package virtual_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/testkit/virtual"
)

// TestWhole: three clients of four goroutines each contend for two keys for ten seconds, which
// take a fraction of that. No two hold a key at once, and all have their turn.
func TestWhole(t *testing.T) {
	began := time.Now()
	virtual.Run(t, 5, func(w *virtual.World) {
		ctx, cancel := context.WithTimeout(w.T.Context(), 10*time.Second)
		defer cancel()
		var holders [2]atomic.Int32
		var grants [3][4]int
		var all sync.WaitGroup
		for i := range grants {
			c := w.Client()
			for j := range grants[i] {
				all.Go(func() {
					for ; ; time.Sleep(time.Millisecond) {
						k := (i + j) % 2
						l, err := c.Acquire(ctx, fmt.Sprint("key", k), 2*time.Second)
						if err != nil {
							require.ErrorIs(t, err, context.DeadlineExceeded)
							return
						}
						require.EqualValues(t, 1, holders[k].Add(1))
						grants[i][j]++
						time.Sleep(5 * time.Millisecond)
						holders[k].Add(-1)
						require.NoError(t, l.Release(context.WithoutCancel(ctx)))
					}
				})
			}
		}
		all.Wait()
		for i := range grants {
			for j, n := range grants[i] {
				require.Greater(t, n, 50, "client %d, goroutine %d", i, j)
			}
		}
	})
	require.Less(t, time.Since(began), 10*time.Second)
}
