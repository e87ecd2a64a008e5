package harness

import (
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/bench/result"
)

// timelineSlots is how finely a window is cut, a multiple of three.
const timelineSlots = 60

// timeline counts what all workers complete, by when. They share it, because
// one for each would be large; what that costs falls on every driver alike.
type timeline struct {
	start time.Time
	width time.Duration
	slots [timelineSlots]struct {
		counts [buckets]atomic.Uint32
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

// result turns the counts into figures.
func (t *timeline) result() []result.Slot {
	all := make([]result.Slot, timelineSlots)
	for i := range all {
		var h Histogram
		for b := range t.slots[i].counts {
			if n := uint64(t.slots[i].counts[b].Load()); n > 0 {
				h.Record(middle(b), n)
			}
		}
		all[i] = result.Slot{
			At:          round((float64(i) + 0.5) * t.width.Seconds()),
			PairsPerSec: round(float64(h.Count()) / t.width.Seconds()),
			P99:         micros(h.Quantile(0.99)),
		}
	}
	return all
}
