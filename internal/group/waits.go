package group

import (
	"sync/atomic"
	"time"
)

// Waits counts the Acquires that have waited, by how their waits ended. The root package
// documents it.
type Waits struct {
	Granted, HandedOver, GaveUp, UsedUp, Closed, Failed uint64

	Total, Longest time.Duration
}

// waitEnd is a field of Waits.
type waitEnd uint8

const (
	granted waitEnd = iota
	handedOver
	gaveUp
	usedUp
	shut
	failed
	waitEnds
)

// waits are the counts of Waits. They are atomic, not under a lock: hand-over is quick, and
// its goroutines would wait for each other there.
type waits struct {
	ended          [waitEnds]atomic.Uint64
	total, longest atomic.Int64
}

// add counts a wait that took d.
func (w *waits) add(end waitEnd, d time.Duration) {
	w.ended[end].Add(1)
	w.total.Add(int64(d))
	for {
		longest := w.longest.Load()
		if int64(d) <= longest || w.longest.CompareAndSwap(longest, int64(d)) {
			return
		}
	}
}

// Waits returns what was counted.
func (g *Group) Waits() Waits {
	of := func(e waitEnd) uint64 { return g.waits.ended[e].Load() }
	return Waits{
		of(granted), of(handedOver), of(gaveUp), of(usedUp), of(shut), of(failed),
		time.Duration(g.waits.total.Load()), time.Duration(g.waits.longest.Load()),
	}
}
