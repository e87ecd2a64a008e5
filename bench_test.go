package redlock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/redlock-go/redlock/internal/testkit/cluster"
)

// BenchmarkPair is an acquire and a release of one lock on three masters in
// another process, by a caller alone and by 64 at once.
func BenchmarkPair(b *testing.B) {
	masters := cluster.Masters(b)
	for _, portable := range []bool{false, true} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("portable=%v/callers=%d", portable, callers), func(b *testing.B) {
				c := cluster.Connect(b, masters, cluster.Portable(portable))
				ctx, cancel := context.WithCancel(context.Background()) // with a Done to wait for
				defer cancel()
				var pairs, turn atomic.Int64
				pairs.Store(int64(b.N))
				b.ReportAllocs()
				b.ResetTimer()
				done := make(chan error, callers)
				for range callers {
					go func() {
						key := fmt.Sprint("lock:", turn.Add(1))
						for pairs.Add(-1) >= 0 {
							lock, err := c.Acquire(ctx, key, cluster.TTL)
							if err == nil {
								err = lock.Release(ctx)
							}
							if err != nil {
								done <- err
								return
							}
						}
						done <- nil
					}()
				}
				for range callers {
					if err := <-done; err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
