package metrics

import "time"

// Bounds are the upper bounds of the buckets, each included in its own. The first holds answers of
// nodes on the same machine, the last but one the longest usual waits for a lock.
var Bounds = [...]time.Duration{
	100 * time.Microsecond, 250 * time.Microsecond, 500 * time.Microsecond,
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond,
	10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
	time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second, 30 * time.Second,
}

// Histogram counts durations. It is not safe for concurrent use.
type Histogram struct {
	Counts [len(Bounds) + 1]uint64 // by bucket; the last has all above the bounds
	Sum    time.Duration
}

// Bucket returns the bucket of a duration.
func Bucket(d time.Duration) int {
	for i, bound := range Bounds {
		if d <= bound {
			return i
		}
	}
	return len(Bounds)
}

// Add counts a duration.
func (h *Histogram) Add(d time.Duration) {
	h.Counts[Bucket(d)]++
	h.Sum += d
}

// Merge adds the durations of another histogram.
func (h *Histogram) Merge(of Histogram) {
	for i, n := range of.Counts {
		h.Counts[i] += n
	}
	h.Sum += of.Sum
}
