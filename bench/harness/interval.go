package harness

import (
	"math"
	"slices"
)

// An interval is what paired rounds show of a ratio: mid is the best estimate of it (Hodges and Lehmann's: the median
// of the means of each two rounds), and it lies from low to high (by Wilcoxon's signed ranks). Nothing is assumed of
// how rounds vary but that without a difference either side is as likely to be ahead by so much; a few wild rounds
// move it little.
type interval struct{ low, mid, high float64 }

// wrong is how often one of all the intervals of a comparison may lie on the wrong side of the ratio.
const wrong = 0.02

// verdict is what an interval says of a loss.
type verdict int

const (
	unclear verdict = iota // more rounds would decide
	level                  // the loss is less than what is to be noticed
	worse                  // there is one
)

// slight is the part of what is to be noticed that counts as no loss.
const slight = 0.2

// scoreOf is how many standard errors there are from the middle of an interval to its end, where it is one of n.
func scoreOf(n int) float64 { return math.Sqrt2 * math.Erfinv(1-2*wrong/float64(n)) }

// intervalOf is the interval of some ratios. Of too few of them it has no ends.
func intervalOf(ratios []float64, score float64) interval {
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
		return interval{0, math.Exp(median(means)), math.Inf(1)}
	}
	return interval{math.Exp(means[cut]), math.Exp(median(means)), math.Exp(means[len(means)-1-cut])}
}

// verdict is what it says of a loss of some per cent.
func (i interval) verdict(loss float64, more bool) verdict {
	least, most := i.low, i.high
	if more {
		least, most = 1/i.high, 1/i.low
	}
	switch {
	case least > 1+slight*loss/100:
		return worse
	case most < 1+loss/100:
		return level
	}
	return unclear
}

// median is the median of sorted numbers.
func median(all []float64) float64 { return (all[(len(all)-1)/2] + all[len(all)/2]) / 2 }
