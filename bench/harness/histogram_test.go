package harness

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryBucketIsWithinOnePercent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		d := time.Duration(r.Uint64N(1 << (1 + r.UintN(topBits)))) // all magnitudes alike
		require.InEpsilon(t, float64(d)+1, float64(middle(bucket(d)))+1, 0.01, "%d", d)
	}
}

func TestQuantilesAgreeWithSorting(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var a, b Histogram
	all := make([]time.Duration, 10_000)
	for i := range all {
		all[i] = time.Duration(r.ExpFloat64() * float64(time.Millisecond))
		[]*Histogram{&a, &b}[i%2].Record(all[i], 1)
	}
	a.Merge(&b)
	slices.Sort(all)
	require.EqualValues(t, len(all), a.Count())
	require.Equal(t, all[len(all)-1], a.Max())
	for _, q := range []float64{0.01, 0.5, 0.99, 0.999} {
		exact := all[int(q*float64(len(all)))-1]
		require.InEpsilon(t, float64(exact), float64(a.Quantile(q)), 0.01, "q %v", q)
	}
	require.Zero(t, testing.AllocsPerRun(100, func() { a.Record(time.Millisecond, 1) }))
	var few Histogram
	require.Zero(t, few.Quantile(0.5))
	few.Record(1001*time.Microsecond, 64)
	require.LessOrEqual(t, few.Quantile(0.999), few.Max(), "no quantile is above the maximum")
}
