package holding

import (
	"sync"
	"sync/atomic"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// expiries counts locks by the end of their validity. So locks that end with their TTL, when nothing happens to them,
// count no more. Counting takes no mutex as a rule, and no memory for each lock.
//
// An end is known to within a grain of time. Each grain has a cell, shared with later grains: a later one takes it over
// once the cell's grain is past, and is counted in the map until then. So one grain may have counts in both. The sum of
// all grains to come is right all the same, and only that is asked for.
type expiries struct {
	clock clock.Clock
	cells [cells]atomic.Uint64 // the grain, and how many locks end in it
	mu    sync.Mutex
	more  map[int64]int
	swept int // how many grains more had after the last sweep
}

const (
	grain     = 27 // bits of an instant: 134 ms
	cells     = 1024
	countBits = 28
)

// add counts n locks with an end at until. n may be less than 0.
func (x *expiries) add(until clock.Instant, n int) {
	if until <= 0 {
		return
	}
	g := int64(until) >> grain
	cell := &x.cells[g%cells]
	for {
		old := cell.Load()
		of, count := int64(old>>countBits), int(old&(1<<countBits-1))
		switch {
		case of == g && count+n >= 0:
			count += n
		case n > 0 && of != g && (count == 0 || of < x.now()):
			count = n
		default:
			x.mu.Lock()
			defer x.mu.Unlock()
			if x.more == nil {
				x.more = make(map[int64]int)
			}
			x.more[g] += n
			if x.more[g] == 0 {
				delete(x.more, g)
			}
			if len(x.more) > 2*x.swept+cells {
				x.sweep(x.now())
			}
			return
		}
		if cell.CompareAndSwap(old, uint64(g)<<countBits|uint64(count)) {
			return
		}
	}
}

// count is how many locks have validity left.
func (x *expiries) count() (n int) {
	first := x.now()
	for i := range x.cells {
		if v := x.cells[i].Load(); int64(v>>countBits) >= first {
			n += int(v & (1<<countBits - 1))
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sweep(first)
	for _, count := range x.more {
		n += count
	}
	return max(0, n)
}

// now is the grain of this instant.
func (x *expiries) now() int64 { return int64(x.clock.Now()) >> grain }

// sweep drops the grains before the first. x.mu is held.
func (x *expiries) sweep(first int64) {
	for g := range x.more {
		if g < first {
			delete(x.more, g)
		}
	}
	x.swept = len(x.more)
}
