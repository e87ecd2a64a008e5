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

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// TestOverlappingSets: many random sets of some keys overlap and share them, and none waits for
// long.
func TestOverlappingSets(t *testing.T) {
	const processes, keys, d = 10, 10, 20 * time.Second
	for _, n := range []int{3, 2} {
		if n < 3 && !testkit.Long() {
			continue
		}
		t.Run(fmt.Sprint(n, " of ", keys), func(t *testing.T) {
			t.Parallel()
			var got service
			virtual.Run(t, 3, func(w *virtual.World) {
				ctx, cancel := context.WithTimeout(w.T.Context(), d)
				defer cancel()
				var all sync.WaitGroup
				var mu sync.Mutex
				for p := range processes {
					c := w.Client()
					require.NoError(w.T, c.Ready(ctx))
					for i := range 2 {
						random := rand.New(rand.NewPCG(uint64(p), uint64(i)))
						all.Go(func() {
							for ctx.Err() == nil {
								var some []string
								for _, k := range random.Perm(keys)[:n] {
									some = append(some, fmt.Sprint("k", k))
								}
								began := time.Now()
								l, err := c.AcquireAll(ctx, longTTL, some...)
								got.add(&mu, service{1, time.Since(began)})
								if err != nil {
									return
								}
								time.Sleep(10 * time.Millisecond)
								_ = l.Release(context.Background())
							}
						})
					}
				}
				all.Wait()
			})
			t.Logf("%d of %d keys: %d grants, longest wait %v", n, keys, got.grants, got.longest)
			assert.LessOrEqual(t, got.longest, 3*time.Second)
		})
	}
}
