package harness

import (
	"math"
	"time"

	"github.com/redlock-go/redlock/bench/place"
	"github.com/redlock-go/redlock/bench/result"
)

// figures turns what was collected between two samples into figures.
func figures(p *Probe, from, to *sample) (r result.Result) {
	elapsed := to.at.Sub(from.at).Seconds()
	pairs := float64(p.pairs)
	perPair := func(x float64) float64 {
		if pairs == 0 {
			return 0 // JSON has no NaN
		}
		return round(x / pairs)
	}
	grown := to.held.Since(from.held)
	r.Figures = result.Figures{
		Seconds:       round(elapsed),
		Pairs:         pairs,
		PairsPerSec:   round(pairs / elapsed),
		P50:           micros(p.latency.Quantile(0.50)),
		P99:           micros(p.latency.Quantile(0.99)),
		P999:          micros(p.latency.Quantile(0.999)),
		Max:           micros(p.latency.Max()),
		AllocsPerPair: perPair(float64(to.mem.Mallocs - from.mem.Mallocs)),
		CPUPerPair:    perPair(micros(to.cpu - from.cpu)),
		ServerCPU:     perPair(between(from.used, to.used)),
		TriesPerPair:  perPair(pairs + float64(p.refused)),
		Errors:        float64(p.errors),
		Others:        others(from, to),
		Goroutines:    float64(to.held.Goroutines),
		AcquireP50:    micros(p.acquire.Quantile(0.50)),
		AcquireP99:    micros(p.acquire.Quantile(0.99)),
		ReleaseP50:    micros(p.release.Quantile(0.50)),
		ReleaseP99:    micros(p.release.Quantile(0.99)),

		GoroutineGrowth:  float64(grown.Goroutines),
		Descriptors:      float64(to.held.Descriptors),
		DescriptorGrowth: float64(grown.Descriptors),
		MemoryMiB:        mebibytes(to.held.Bytes),
		MemoryGrowthMiB:  mebibytes(grown.Bytes),
	}
	if p.first != nil {
		r.FirstError = p.first.Error()
	}
	return r
}

// others is the share of all processors that programs but this one and the servers have used, or 0 where that is not known.
func others(from, to *sample) float64 {
	served := between(from.used, to.used)
	if from.idle == 0 || served == 0 {
		return 0
	}
	all := to.at.Sub(from.at) * time.Duration(place.Processors())
	used := to.cpu - from.cpu + time.Duration(served*float64(time.Microsecond))
	return round(max(0, float64(all-(to.idle-from.idle)-used)/float64(all)))
}

// mebibytes is a number of bytes in MiB.
func mebibytes(n int64) float64 { return round(float64(n) / (1 << 20)) }

// micros is d in microseconds.
func micros(d time.Duration) float64 { return round(float64(d) / float64(time.Microsecond)) }

// round keeps three decimals: more would not be exact.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }
