package harness

import (
	"sync/atomic"
	"time"
)

// timelineSlots is how finely a window is cut, a multiple of three.
const timelineSlots = 60

// Slot is one slice of a time line.
type Slot struct {
	At          float64 `json:"at_s"` // its middle, since the start of the window
	PairsPerSec float64 `json:"pairs_per_sec"`
	P50         float64 `json:"p50_us"`
	P99         float64 `json:"p99_us"`
	Errors      float64 `json:"errors"`
}

// timeline counts what all workers complete, by when. They share it, because
// one for each would be large; what that costs falls on every driver alike.
type timeline struct {
	start time.Time
	width time.Duration
	slots [timelineSlots]struct {
		counts [buckets]atomic.Uint32
		errors atomic.Uint32
	}
}

// begin starts a window of the given length.
func (t *timeline) begin(now time.Time, window time.Duration) {
	t.start, t.width = now, window/timelineSlots
}

// slot is the index of the slice that now is in, or false.
func (t *timeline) slot(now time.Time) (int, bool) {
	i := int(now.Sub(t.start) / t.width)
	return i, i >= 0 && i < timelineSlots
}

// pairs counts n pairs, each of which took d.
func (t *timeline) pairs(n int, d time.Duration) {
	if i, ok := t.slot(time.Now()); ok {
		t.slots[i].counts[bucket(d)].Add(uint32(n))
	}
}

// failed counts an error.
func (t *timeline) failed() {
	if i, ok := t.slot(time.Now()); ok {
		t.slots[i].errors.Add(1)
	}
}

// result turns the counts into figures.
func (t *timeline) result() []Slot {
	all := make([]Slot, timelineSlots)
	for i := range all {
		var h Histogram
		for b := range t.slots[i].counts {
			if n := uint64(t.slots[i].counts[b].Load()); n > 0 {
				h.Record(middle(b), n)
			}
		}
		all[i] = Slot{
			At:          round((float64(i) + 0.5) * t.width.Seconds()),
			PairsPerSec: round(float64(h.Count()) / t.width.Seconds()),
			P50:         micros(h.Quantile(0.50)),
			P99:         micros(h.Quantile(0.99)),
			Errors:      float64(t.slots[i].errors.Load()),
		}
	}
	return all
}

// medianSlots is the median time line over the rounds that have one.
func medianSlots(rounds []Result) []Slot {
	if len(rounds[0].Timeline) == 0 {
		return nil
	}
	all := make([]Slot, len(rounds[0].Timeline))
	for i := range all {
		figure := func(of func(Slot) float64) float64 {
			return median(rounds, func(r Result) float64 { return of(r.Timeline[i]) })
		}
		all[i] = Slot{
			At:          rounds[0].Timeline[i].At,
			PairsPerSec: figure(func(s Slot) float64 { return s.PairsPerSec }),
			P50:         figure(func(s Slot) float64 { return s.P50 }),
			P99:         figure(func(s Slot) float64 { return s.P99 }),
			Errors:      figure(func(s Slot) float64 { return s.Errors }),
		}
	}
	return all
}
