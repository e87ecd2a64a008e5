package quorum_test

import (
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/quorum"
)

const (
	ms       = time.Millisecond
	farthest = time.Duration(math.MaxInt64)
	earliest = time.Duration(math.MinInt64)
)

// edges are the durations at which arithmetic goes wrong.
var edges = []time.Duration{
	earliest, earliest + 1, earliest + 2*ms, earliest / 2, -time.Hour, -3 * ms, -2 * ms, -1,
	0, 1, 99, 100, ms, 2*ms - 1, 2 * ms, 2*ms + 1, 3 * ms, time.Second, time.Hour,
	farthest / 2, farthest - 2*ms, farthest - 1, farthest,
}

func TestUntil(t *testing.T) {
	const start = 7 * time.Second
	// A TTL no longer than its own drift is never valid, not even at once.
	for _, short := range []time.Duration{earliest, -time.Hour, -1, 0, 1, ms, 2 * ms, 2*ms + 2*ms/100} {
		require.LessOrEqual(t, quorum.Until(start, short), start, "ttl %v", short)
		require.Equal(t, 2*ms, quorum.Drift(short).Truncate(ms), "ttl %v", short)
	}
}

// FuzzUntil looks for a lock that is valid for longer than it is, from every combination of edges on. It compares with the
// same sums done in numbers without end: overflow must not lengthen a lock.
func FuzzUntil(f *testing.F) {
	for _, start := range edges {
		for _, ttl := range edges {
			f.Add(int64(start), int64(ttl))
		}
	}
	f.Fuzz(func(t *testing.T, from, length int64) {
		start, ttl := time.Duration(from), time.Duration(length)
		until := quorum.Until(start, ttl)
		if want := clamp(sum(start, clamp(sum(ttl, -quorum.Drift(ttl))))); until != want {
			t.Fatalf("Until(%d, %d) = %d, want %d", start, ttl, until, want)
		}
		if truth := sum(start, ttl, -quorum.Drift(ttl)); start >= 0 && ttl > 0 && truth.Cmp(sum(until)) < 0 {
			t.Fatalf("Until(%d, %d) = %d, beyond the true %v", start, ttl, until, truth)
		}
	})
}

func sum(ds ...any) *big.Int {
	total := new(big.Int)
	for _, d := range ds {
		switch d := d.(type) {
		case time.Duration:
			total.Add(total, big.NewInt(int64(d)))
		case *big.Int:
			total.Add(total, d)
		}
	}
	return total
}

func clamp(x *big.Int) time.Duration {
	switch {
	case x.IsInt64():
		return time.Duration(x.Int64())
	case x.Sign() > 0:
		return farthest
	}
	return earliest
}
