package quorum_test

import (
	"math"
	"math/big"
	"math/rand/v2"
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

func TestDrift(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{
		0:                2 * ms,
		-time.Hour:       2 * ms,
		earliest:         2 * ms,
		100 * ms:         3 * ms,
		10 * time.Second: 102 * ms,
		time.Minute:      602 * ms,
	} {
		require.Equal(t, want, quorum.Drift(ttl), "ttl %v", ttl)
	}
}

func TestValidity(t *testing.T) {
	const start, ttl = 7 * time.Second, 10 * time.Second
	for _, c := range []struct {
		now, want time.Duration
	}{
		{start, 9898 * ms},
		{start + ms, 9897 * ms},
		{start + 9898*ms, 0},
		{start + 9898*ms - 1, 1},
		{start + ttl, -102 * ms},
		{start - time.Hour, 9898 * ms},
	} {
		require.Equal(t, c.want, quorum.Validity(start, c.now, ttl), "now %v", c.now)
	}
	require.Equal(t, start+9898*ms, quorum.Until(start, ttl))

	// A TTL no longer than its own drift is never valid, not even at once.
	for _, short := range []time.Duration{earliest, -1, 0, 1, ms, 2 * ms, 2*ms + 2*ms/100} {
		require.LessOrEqual(t, quorum.Validity(start, start, short), time.Duration(0), "ttl %v", short)
	}
}

// TestValidityExtremes checks every combination of edges.
func TestValidityExtremes(t *testing.T) {
	for _, start := range edges {
		for _, now := range edges {
			for _, ttl := range edges {
				checkValidity(t, start, now, ttl)
			}
		}
	}
}

func TestValidityRandom(t *testing.T) {
	rng := random(t)
	for range 50_000 {
		checkValidity(t, anyDuration(rng), anyDuration(rng), anyDuration(rng))
	}
}

// FuzzValidity looks for an instant at which a lock would be valid for longer
// than it is.
func FuzzValidity(f *testing.F) {
	f.Add(int64(0), int64(5*time.Second), int64(10*time.Second))
	f.Add(int64(math.MaxInt64), int64(math.MinInt64), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, start, now, ttl int64) {
		checkValidity(t, time.Duration(start), time.Duration(now), time.Duration(ttl))
	})
}

// anyDuration is of any magnitude with equal chance, and of either sign.
func anyDuration(rng *rand.Rand) time.Duration {
	return time.Duration(rng.Uint64()) >> rng.IntN(64)
}

// checkValidity compares with the same sums done in numbers without end, and
// checks what must hold of any validity.
func checkValidity(t *testing.T, start, now, ttl time.Duration) {
	t.Helper()
	until, left := quorum.Until(start, ttl), quorum.Validity(start, now, ttl)

	if want := clamp(sum(start, clamp(sum(ttl, -quorum.Drift(ttl))))); until != want {
		t.Fatalf("Until(%d, %d) = %d, want %d", start, ttl, until, want)
	}
	if want := clamp(sum(until, negative(max(now, start)))); left != want {
		t.Fatalf("Validity(%d, %d, %d) = %d, want %d", start, now, ttl, left, want)
	}

	// Nobody gains from an overflow, a late reading or a clock set back.
	truth := sum(start, ttl, -quorum.Drift(ttl), negative(now))
	if left > 0 && truth.Cmp(sum(left)) < 0 {
		t.Fatalf("Validity(%d, %d, %d) = %d, more than the true %v", start, now, ttl, left, truth)
	}
	if left > 0 && (left >= ttl || now >= until) {
		t.Fatalf("Validity(%d, %d, %d) = %d: more than the TTL, or past until %d", start, now, ttl, left, until)
	}
	if now < farthest && quorum.Validity(start, now+1, ttl) > left {
		t.Fatalf("Validity(%d, %d, %d) grows with time", start, now, ttl)
	}
	if now <= start && left != quorum.Validity(start, start, ttl) {
		t.Fatalf("Validity(%d, %d, %d): a clock set back is not at start", start, now, ttl)
	}
	if ttl < farthest && quorum.Until(start, ttl+1) < until {
		t.Fatalf("Until(%d, %d) shrinks with the TTL", start, ttl)
	}
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

func negative(d time.Duration) *big.Int { return new(big.Int).Neg(big.NewInt(int64(d))) }

func clamp(x *big.Int) time.Duration {
	switch {
	case x.IsInt64():
		return time.Duration(x.Int64())
	case x.Sign() > 0:
		return farthest
	}
	return earliest
}
