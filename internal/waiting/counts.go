package waiting

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

// Add adds the counts of other lines.
func (w *Waits) Add(of Waits) {
	w.Granted += of.Granted
	w.HandedOver += of.HandedOver
	w.GaveUp += of.GaveUp
	w.UsedUp += of.UsedUp
	w.Closed += of.Closed
	w.Failed += of.Failed
	w.Total += of.Total
	w.Longest = max(w.Longest, of.Longest)
}

// End is how a wait ended: a field of Waits.
type End uint8

const (
	Granted End = iota
	HandedOver
	GaveUp
	AttemptsUsedUp
	ClientClosed
	Failed
	ends
)

// counts are those of Waits. They are atomic, not under a lock: hand-over is quick, and its
// goroutines would wait for each other there.
type counts struct {
	ended          [ends]atomic.Uint64
	total, longest atomic.Int64
}

// CountWait counts an Acquire that has waited.
func (l *Lines) CountWait(t *Tries) {
	c, d := &l.counts, int64(l.cfg.Clock.Now()-t.Began)
	c.ended[t.End].Add(1)
	c.total.Add(d)
	for {
		longest := c.longest.Load()
		if d <= longest || c.longest.CompareAndSwap(longest, d) {
			return
		}
	}
}

// Waits returns what was counted.
func (l *Lines) Waits() Waits {
	c := &l.counts
	of := func(e End) uint64 { return c.ended[e].Load() }
	return Waits{
		of(Granted), of(HandedOver), of(GaveUp), of(AttemptsUsedUp), of(ClientClosed), of(Failed),
		time.Duration(c.total.Load()), time.Duration(c.longest.Load()),
	}
}
