package harness

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/result"
)

// TestALossIsNoticed plays comparisons whose rounds differ by 4 %, of each ten one by much more, and one has no figure: one
// without a loss is no alarm, and each loss of 5 % is one.
func TestALossIsNoticed(t *testing.T) {
	const comparisons, cells = 40, 12
	rng := rand.New(rand.NewPCG(1, 2))
	opts := Options{Rounds: 20, Notice: 5}
	play := func(loss float64) (found map[verdict]int, rounds int) {
		found = map[verdict]int{}
		for range comparisons {
			var all []match
			for len(all) < opts.Rounds || len(all) < patience*opts.Rounds && !isDecided(all, opts, result.ScoreOf(cells)) {
				noise := 0.04 * rng.NormFloat64()
				if rng.IntN(10) == 0 {
					noise *= 8
				}
				cpu := []float64{1, (1 + loss) * math.Exp(noise)}
				if rng.IntN(10) == 0 {
					cpu[rng.IntN(2)] = 0
				}
				var m match
				for i := range m.results {
					m.results[i] = &result.Result{Figures: result.Figures{CPUPerPair: cpu[i]}}
				}
				all = append(all, m)
			}
			ratios, _ := paired(all, compared[1].of)
			found[verdictOf(result.IntervalOf(ratios, result.ScoreOf(cells)), opts.Notice, false)]++
			rounds += len(all)
		}
		return found, rounds / comparisons
	}
	found, rounds := play(0)
	require.Equal(t, map[verdict]int{level: comparisons}, found)
	require.Less(t, rounds, 3*opts.Rounds)
	found, rounds = play(0.05)
	require.Equal(t, map[verdict]int{worse: comparisons}, found)
	require.Less(t, rounds, 4*opts.Rounds)
}

// TestInterval: too few rounds have no ends, and more is better for some figures.
func TestInterval(t *testing.T) {
	few := result.IntervalOf([]float64{1.1, 1.2, 1.3}, result.ScoreOf(12))
	require.InDelta(t, 1.2, few.Mid, 0.01)
	require.Equal(t, []float64{0, math.Inf(1)}, []float64{few.Low, few.High})
	require.Equal(t, unclear, verdictOf(few, 5, true))

	for _, c := range []struct {
		low, high  float64
		less, more verdict
	}{
		{1.02, 1.08, worse, level}, {0.93, 0.98, level, worse}, {0.97, 1.03, level, level},
		{1.00, 1.06, unclear, level}, {0.94, 1.00, level, unclear}, {0.90, 1.10, unclear, unclear},
	} {
		i := result.Interval{Low: c.low, Mid: 1, High: c.high}
		require.Equal(t, []verdict{c.less, c.more}, []verdict{verdictOf(i, 5, false), verdictOf(i, 5, true)}, c)
	}
}

// TestCalm: rounds that others have disturbed do not count, unless most are.
func TestCalm(t *testing.T) {
	of := func(others ...float64) (found []float64) {
		var all []match
		for _, each := range others {
			all = append(all, match{others: each})
		}
		for _, m := range calm(all) {
			found = append(found, m.others)
		}
		return found
	}
	require.Equal(t, []float64{0.1, 0.11, 0.12}, of(0.5, 0.12, 0.11, 0.1))
	require.Equal(t, []float64{0.1, 0.4}, of(0.6, 0.5, 0.1, 0.4))
	require.Equal(t, []float64{0, 0}, of(0, 0))
}
