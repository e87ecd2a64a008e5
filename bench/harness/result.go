package harness

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Result is one measured cell, or the medians of the same cell over several
// rounds. Its JSON form is what other tools read, one object a line.
type Result struct {
	Driver        string   `json:"driver"`
	Scenario      Scenario `json:"scenario"`
	Nodes         int      `json:"nodes"`
	Concurrency   int      `json:"concurrency"`
	Seconds       float64  `json:"seconds"`
	Pairs         uint64   `json:"pairs"`
	PairsPerSec   float64  `json:"pairs_per_sec"`
	P50           float64  `json:"p50_us"`
	P99           float64  `json:"p99_us"`
	P999          float64  `json:"p999_us"`
	Max           float64  `json:"max_us"`
	AllocsPerPair float64  `json:"allocs_per_pair"`
	BytesPerPair  float64  `json:"bytes_per_pair"`
	CPUPerPair    float64  `json:"client_cpu_us_per_pair"`
	// Errors is summed over the rounds: a median would hide a rare one.
	Errors uint64 `json:"errors"`
	// Goroutines is all there were in the process at the end of the window,
	// the harness's own workers included.
	Goroutines int `json:"goroutines"`

	// Of the two halves of a pair. Of more than 64 workers one pair in several
	// is timed apart; a driver that merges the halves has none.
	AcquireP50 float64 `json:"acquire_p50_us,omitempty"`
	AcquireP99 float64 `json:"acquire_p99_us,omitempty"`
	ReleaseP50 float64 `json:"release_p50_us,omitempty"`
	ReleaseP99 float64 `json:"release_p99_us,omitempty"`

	// What a PING takes on an idle connection, by the way that the clients take:
	// the round trip of the network and no more. It is the same for all drivers.
	PingP50 float64 `json:"ping_p50_us,omitempty"`
	PingP99 float64 `json:"ping_p99_us,omitempty"`

	// What follows is told only where it is not as usual.

	Rounds int     `json:"rounds,omitempty"`
	Spread *Spread `json:"spread,omitempty"` // over the rounds

	KeyLen int     `json:"key_bytes,omitempty"` // of a run over several lengths
	RTT    float64 `json:"rtt_us,omitempty"`    // what was added
	Fault  Fault   `json:"fault,omitempty"`     // of the first node
	Procs  int     `json:"gomaxprocs,omitempty"`

	// What a fault has cost at the end of the window, and how much more it is
	// than before the fault.
	GoroutineGrowth  int     `json:"goroutines_growth,omitempty"`
	Descriptors      int     `json:"descriptors,omitempty"`
	DescriptorGrowth int     `json:"descriptors_growth,omitempty"`
	MemoryMiB        float64 `json:"memory_mib,omitempty"` // heap in use, and stacks
	MemoryGrowthMiB  float64 `json:"memory_growth_mib,omitempty"`
	RSSMiB           float64 `json:"rss_mib,omitempty"`
	RSSGrowthMiB     float64 `json:"rss_growth_mib,omitempty"`

	// Timeline shows the window in slices, if something happened in it.
	Timeline []Slot `json:"timeline,omitempty"`

	// Latency is that of all pairs of all rounds.
	Latency *Histogram `json:"-"`
	// TriesPerPair is how many attempts one acquired lock took.
	TriesPerPair float64 `json:"-"`
	// FirstError is the text of the first error met, if any.
	FirstError string `json:"-"`
}

// Range is the lowest and the highest of a figure over the rounds.
type Range [2]float64

// String is the range as tables show it.
func (r Range) String() string { return fmt.Sprintf("%.0f–%.0f", r[0], r[1]) }

// Spread is how far the rounds are apart.
type Spread struct {
	PairsPerSec Range `json:"pairs_per_sec"`
	P50         Range `json:"p50_us"`
	P99         Range `json:"p99_us"`
	CPUPerPair  Range `json:"client_cpu_us_per_pair"`
}

// newResult turns what was collected between two samples into figures.
func newResult(cfg Config, p *Probe, from, to *sample) Result {
	elapsed := to.at.Sub(from.at).Seconds()
	pairs := p.latency.Count()
	perPair := func(x float64) float64 {
		if pairs == 0 {
			return 0 // not NaN, which JSON cannot say
		}
		return round(x / float64(pairs))
	}
	r := Result{
		Scenario:      cfg.Scenario,
		Nodes:         len(cfg.Nodes),
		Concurrency:   cfg.Concurrency,
		Seconds:       round(elapsed),
		Pairs:         pairs,
		PairsPerSec:   round(float64(pairs) / elapsed),
		P50:           micros(p.latency.Quantile(0.50)),
		P99:           micros(p.latency.Quantile(0.99)),
		P999:          micros(p.latency.Quantile(0.999)),
		Max:           micros(p.latency.Max()),
		AllocsPerPair: perPair(float64(to.mem.Mallocs - from.mem.Mallocs)),
		BytesPerPair:  perPair(float64(to.mem.TotalAlloc - from.mem.TotalAlloc)),
		CPUPerPair:    perPair(micros(to.cpu - from.cpu)),
		Errors:        p.errors,
		Goroutines:    to.goroutines,
		TriesPerPair:  perPair(float64(pairs + p.refused)),
		AcquireP50:    micros(p.acquire.Quantile(0.50)),
		AcquireP99:    micros(p.acquire.Quantile(0.99)),
		ReleaseP50:    micros(p.release.Quantile(0.50)),
		ReleaseP99:    micros(p.release.Quantile(0.99)),
	}
	if p.first != nil {
		r.FirstError = p.first.Error()
	}
	if pairs > 0 {
		r.Latency = &p.latency
	}
	r.GoroutineGrowth = to.goroutines - from.goroutines
	r.Descriptors = to.descriptors
	r.DescriptorGrowth = to.descriptors - from.descriptors
	r.MemoryMiB = mebibytes(to.bytes)
	r.MemoryGrowthMiB = mebibytes(to.bytes - from.bytes)
	r.RSSMiB = mebibytes(to.resident)
	r.RSSGrowthMiB = mebibytes(to.resident - from.resident)
	return r
}

// describe adds what a cell has beyond its configuration, and takes away what
// is of interest only while a node is unwell.
func (r *Result) describe(c Cell, o Options) {
	if len(o.KeyLen) > 1 {
		r.KeyLen = c.KeyLen
	}
	r.RTT = micros(c.RTT)
	r.Procs = c.Procs
	if len(o.Faults) > 0 {
		r.Fault = c.Fault
		return
	}
	r.GoroutineGrowth, r.Descriptors, r.DescriptorGrowth = 0, 0, 0
	r.MemoryMiB, r.MemoryGrowthMiB, r.RSSMiB, r.RSSGrowthMiB = 0, 0, 0, 0
}

// Median combines the rounds of one cell: the median of every figure, the sum
// of the errors, and how far the rounds are apart. It needs at least one round.
func Median(rounds []Result) Result {
	m := rounds[0]
	m.Seconds = median(rounds, func(r Result) float64 { return r.Seconds })
	m.Pairs = median(rounds, func(r Result) uint64 { return r.Pairs })
	m.PairsPerSec = median(rounds, func(r Result) float64 { return r.PairsPerSec })
	m.P50 = median(rounds, func(r Result) float64 { return r.P50 })
	m.P99 = median(rounds, func(r Result) float64 { return r.P99 })
	m.P999 = median(rounds, func(r Result) float64 { return r.P999 })
	m.Max = median(rounds, func(r Result) float64 { return r.Max })
	m.AllocsPerPair = median(rounds, func(r Result) float64 { return r.AllocsPerPair })
	m.BytesPerPair = median(rounds, func(r Result) float64 { return r.BytesPerPair })
	m.CPUPerPair = median(rounds, func(r Result) float64 { return r.CPUPerPair })
	m.Goroutines = median(rounds, func(r Result) int { return r.Goroutines })
	m.TriesPerPair = median(rounds, func(r Result) float64 { return r.TriesPerPair })
	m.GoroutineGrowth = median(rounds, func(r Result) int { return r.GoroutineGrowth })
	m.Descriptors = median(rounds, func(r Result) int { return r.Descriptors })
	m.DescriptorGrowth = median(rounds, func(r Result) int { return r.DescriptorGrowth })
	m.MemoryMiB = median(rounds, func(r Result) float64 { return r.MemoryMiB })
	m.MemoryGrowthMiB = median(rounds, func(r Result) float64 { return r.MemoryGrowthMiB })
	m.RSSMiB = median(rounds, func(r Result) float64 { return r.RSSMiB })
	m.RSSGrowthMiB = median(rounds, func(r Result) float64 { return r.RSSGrowthMiB })
	m.AcquireP50 = median(rounds, func(r Result) float64 { return r.AcquireP50 })
	m.AcquireP99 = median(rounds, func(r Result) float64 { return r.AcquireP99 })
	m.ReleaseP50 = median(rounds, func(r Result) float64 { return r.ReleaseP50 })
	m.ReleaseP99 = median(rounds, func(r Result) float64 { return r.ReleaseP99 })
	m.PingP50 = median(rounds, func(r Result) float64 { return r.PingP50 })
	m.PingP99 = median(rounds, func(r Result) float64 { return r.PingP99 })
	m.Timeline = medianSlots(rounds)
	m.Latency = merged(rounds)
	for _, r := range rounds[1:] {
		m.Errors += r.Errors
		m.FirstError = cmp.Or(m.FirstError, r.FirstError)
	}
	if len(rounds) > 1 {
		m.Rounds = len(rounds)
		m.Spread = &Spread{
			PairsPerSec: extremes(rounds, func(r Result) float64 { return r.PairsPerSec }),
			P50:         extremes(rounds, func(r Result) float64 { return r.P50 }),
			P99:         extremes(rounds, func(r Result) float64 { return r.P99 }),
			CPUPerPair:  extremes(rounds, func(r Result) float64 { return r.CPUPerPair }),
		}
	}
	return m
}

// extremes are the lowest and the highest of one figure over the rounds.
func extremes(rounds []Result, figure func(Result) float64) Range {
	low := figure(rounds[0])
	high := low
	for _, r := range rounds[1:] {
		low, high = min(low, figure(r)), max(high, figure(r))
	}
	return Range{low, high}
}

// median is the middle of one figure over the rounds; of an even number, the
// mean of the two in the middle.
func median[T float64 | uint64 | int](rounds []Result, figure func(Result) T) T {
	all := make([]T, len(rounds))
	for i, r := range rounds {
		all[i] = figure(r)
	}
	slices.Sort(all)
	half := len(all) / 2
	if len(all)%2 == 1 {
		return all[half]
	}
	return (all[half-1] + all[half]) / 2
}

// merged is one histogram of the pairs of all rounds.
func merged(rounds []Result) *Histogram {
	var all *Histogram
	for _, r := range rounds {
		if r.Latency == nil {
			continue
		}
		if all == nil {
			all = new(Histogram)
		}
		all.Merge(r.Latency)
	}
	return all
}

// mebibytes is a number of bytes in MiB.
func mebibytes(n int64) float64 { return round(float64(n) / (1 << 20)) }

// micros is d in microseconds.
func micros(d time.Duration) float64 { return round(float64(d) / float64(time.Microsecond)) }

// round keeps three decimals: more would pretend.
func round(x float64) float64 { return math.Round(x*1000) / 1000 }
