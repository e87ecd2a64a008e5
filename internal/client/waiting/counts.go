package waiting

import (
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/metrics"
)

// End is how a wait ended: a field of metrics.Stats.Waits.
type End uint8

const (
	Granted End = iota
	HandedOver
	GaveUp
	Exhausted
	ClientClosed
	Failed
	ends
)

// counts is of waits. They are atomic, not under a lock: hand-over is quick, and its goroutines would wait for each
// other there.
type counts struct {
	ended          [ends]atomic.Uint64
	total, longest atomic.Int64
	times          [len(metrics.Bounds) + 1]atomic.Uint64
}

// CountWait counts an Acquire after its wait.
func (l *Lines) CountWait(t *Tries) {
	c, d := &l.counts, int64(l.cfg.Clock.Now().Sub(t.Began))
	c.ended[t.End].Add(1)
	c.total.Add(d)
	c.times[metrics.Bucket(time.Duration(d))].Add(1)
	for {
		longest := c.longest.Load()
		if d <= longest || c.longest.CompareAndSwap(longest, d) {
			return
		}
	}
}

// AddStats adds the counts to s.
func AddStats[N any](l *Lines, s *metrics.Stats[N]) {
	c, w := &l.counts, &s.Waits
	for end, field := range []*uint64{Granted: &w.Granted, HandedOver: &w.HandedOver, GaveUp: &w.GaveUp, Exhausted: &w.UsedUp, ClientClosed: &w.Closed, Failed: &w.Failed} {
		*field += c.ended[end].Load()
	}
	w.Total += time.Duration(c.total.Load())
	w.Longest = max(w.Longest, time.Duration(c.longest.Load()))
	for i := range s.WaitTimes.Counts {
		s.WaitTimes.Counts[i] += c.times[i].Load()
	}
	s.WaitTimes.Sum += time.Duration(c.total.Load())
	s.InLine += l.waiting.Inside()
	s.HandedOver += l.passed.Load()
}
