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
