package harness

import (
	"math"
	"math/bits"
	"time"
)

const (
	// subBits sets the precision: each power of two is cut into 1<<subBits
	// buckets, so the middle of a bucket is at most 1/128 away from any value
	// in it.
	subBits = 6
	// topBits bounds the durations that are distinguished: 2^42 ns is more than an hour.
	topBits = 42
	buckets = (topBits - subBits + 1) << subBits
)

// Histogram counts durations in buckets whose width grows with the value
// (linear within a power of two, logarithmic over them). Its size is fixed, so
// recording never allocates. The zero value is ready to use.
type Histogram struct {
	counts [buckets]uint64
	total  uint64
	max    time.Duration
}

// Record counts d, n times.
func (h *Histogram) Record(d time.Duration, n uint64) {
	h.counts[bucket(d)] += n
	h.total += n
	h.max = max(h.max, d)
}

// Merge adds everything that other has counted.
func (h *Histogram) Merge(other *Histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
	h.max = max(h.max, other.max)
}

// Count is how many durations were recorded.
func (h *Histogram) Count() uint64 { return h.total }

// Max is the largest duration recorded, exactly.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile returns the duration that the fraction q of all that was recorded
// did not exceed, to within one percent; 0 if nothing was recorded.
func (h *Histogram) Quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := max(uint64(math.Ceil(q*float64(h.total))), 1)
	for i, n := range h.counts {
		if n >= rank {
			return min(middle(i), h.max)
		}
		rank -= n
	}
	return h.max
}

// bucket maps a duration to its bucket. Below 2<<subBits ns every value has a
// bucket of its own; above, the leading subBits+1 bits choose one.
func bucket(d time.Duration) int {
	v := uint64(min(max(d, 0), 1<<topBits-1))
	shift := max(bits.Len64(v)-subBits-1, 0)
	return shift<<subBits + int(v>>shift)
}

// middle is the middle of a bucket, the inverse of bucket.
func middle(i int) time.Duration {
	if i < 2<<subBits {
		return time.Duration(i)
	}
	shift := i>>subBits - 1
	low := uint64(i-shift<<subBits) << shift
	return time.Duration(low + 1<<shift>>1)
}
