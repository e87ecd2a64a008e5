package result

import (
	"math"
	"slices"
)

// An Interval is what paired rounds show of a ratio: Mid is the best estimate of it (Hodges and Lehmann's: the median
// of the means of each two rounds), and it lies from Low to High (by Wilcoxon's signed ranks). Nothing is assumed of
// how rounds vary but that without a difference either side is as likely to be ahead by so much; a few wild rounds
// move it little.
type Interval struct{ Low, Mid, High float64 }

// wrong is how often one of all the intervals of a comparison may lie on the wrong side of the ratio.
const wrong = 0.02

// ScoreOf returns how many standard errors there are from the middle of an interval to its end, where it is one of n.
func ScoreOf(n int) float64 { return math.Sqrt2 * math.Erfinv(1-2*wrong/float64(n)) }

// IntervalOf returns the interval of some ratios. Of too few of them it has no ends.
func IntervalOf(ratios []float64, score float64) Interval {
	n := float64(len(ratios))
	means := make([]float64, 0, len(ratios)*(len(ratios)+1)/2)
	for i, a := range ratios {
		for _, b := range ratios[i:] {
			means = append(means, (math.Log(a)+math.Log(b))/2)
		}
	}
	slices.Sort(means)
	cut := int(math.Floor(n*(n+1)/4 - score*math.Sqrt(n*(n+1)*(2*n+1)/24)))
	if cut < 0 {
		return Interval{0, math.Exp(Median(means)), math.Inf(1)}
	}
	return Interval{math.Exp(means[cut]), math.Exp(Median(means)), math.Exp(means[len(means)-1-cut])}
}

// Beside returns the ratios of a figure of r to that of another row, of the rounds in which both have it.
func (r *Row) Beside(other *Row, of func(*Figures) float64) (ratios []float64) {
	for _, a := range r.Rounds {
		for _, b := range other.Rounds {
			if x, y := of(&a.Figures), of(&b.Figures); a.Round == b.Round && a.Error == "" && b.Error == "" && x > 0 && y > 0 {
				ratios = append(ratios, x/y)
			}
		}
	}
	return ratios
}

// Median returns the median of sorted numbers.
func Median(all []float64) float64 { return (all[(len(all)-1)/2] + all[len(all)/2]) / 2 }
