package harness

import (
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/bench/result"
)

// timelineSlots is the number of slices of a window, a multiple of three.
const timelineSlots = 60

// timeline counts what all workers complete in each slice. They share it: its cost is the same
// for every driver.
type timeline struct {
	start time.Time
	width time.Duration
	slots [timelineSlots]atomic.Int64
}

// begin starts a window of the given length.
func (t *timeline) begin(now time.Time, window time.Duration) {
	t.start, t.width = now, window/timelineSlots
}

// pairs counts n pairs.
func (t *timeline) pairs(n int) {
	if i := int(time.Since(t.start) / t.width); i >= 0 && i < timelineSlots {
		t.slots[i].Add(int64(n))
	}
}

// result turns the counts into figures.
func (t *timeline) result() []result.Slot {
	all := make([]result.Slot, timelineSlots)
	for i := range all {
		all[i] = result.Slot{
			At:          round((float64(i) + 0.5) * t.width.Seconds()),
			PairsPerSec: round(float64(t.slots[i].Load()) / t.width.Seconds()),
		}
	}
	return all
}
