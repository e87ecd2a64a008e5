package harness

import (
	"sync/atomic"
	"time"
)

// The phases of a cell. Workers continue for a moment after counting has ended, so that the
// figures are those of a client at work.
const (
	warming int32 = iota
	counting
	settling
	stopped
)

// Probe collects what one worker, or one [Runner], completes. It is used by
// one goroutine and allocates nothing.
type Probe struct {
	phase   *atomic.Int32
	latency Histogram // of pairs, failed ones included
	pairs   uint64    // that have not failed
	acquire Histogram // of those pairs that were timed apart
	release Histogram
	refused uint64
	errors  uint64
	first   error
}

// Running reports whether the cell continues.
func (p *Probe) Running() bool { return p.phase.Load() != stopped }

// Pairs reports n pairs that have just been completed, each of which took d.
func (p *Probe) Pairs(n int, d time.Duration) {
	if p.phase.Load() == counting {
		p.latency.Record(d, uint64(n))
		p.pairs += uint64(n)
	}
}

// Apart reports how long each half of n of these pairs took.
func (p *Probe) Apart(n int, acquire, release time.Duration) {
	if p.phase.Load() == counting {
		p.acquire.Record(acquire, uint64(n))
		p.release.Record(release, uint64(n))
	}
}

// Refused reports an attempt that found the lock taken.
func (p *Probe) Refused() {
	if p.phase.Load() == counting {
		p.refused++
	}
}

// Failed reports a pair that ended with an error after d. It counts in the latency with all of that, or clients that give up early
// would look fast. The first error is kept even if it came during warm-up: it is the most useful one.
func (p *Probe) Failed(err error, d time.Duration) {
	switch p.phase.Load() {
	case stopped:
		return
	case counting:
		p.errors++
		p.latency.Record(d, 1)
	}
	if p.first == nil {
		p.first = err
	}
}

// merge adds what other has collected.
func (p *Probe) merge(other *Probe) {
	p.latency.Merge(&other.latency)
	p.acquire.Merge(&other.acquire)
	p.release.Merge(&other.release)
	p.pairs += other.pairs
	p.refused += other.refused
	p.errors += other.errors
	if p.first == nil {
		p.first = other.first
	}
}
