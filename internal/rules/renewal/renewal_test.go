package renewal_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/renewal"
)

type entry struct {
	place int
	at    clock.Instant
}

func (e *entry) Place() *int { return &e.place }

// TestSchedule is compared with a sorted list, over random changes.
func TestSchedule(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var s renewal.Schedule[*entry]
	var all []*entry
	for range 3_000 {
		switch n := random.IntN(10); {
		case n < 4 || len(all) == 0:
			e := &entry{0, clock.Instant(random.IntN(1000))}
			all = append(all, e)
			s.Set(e, e.at)
		case n < 8:
			e := all[random.IntN(len(all))]
			e.at = clock.Instant(random.IntN(1000))
			s.Set(e, e.at)
		default:
			i := random.IntN(len(all))
			s.Remove(all[i])
			require.Zero(t, all[i].place)
			s.Remove(all[i]) // nothing
			all = slices.Delete(all, i, i+1)
		}
		require.Equal(t, len(all), s.Len())
		if len(all) > 0 {
			least := slices.MinFunc(all, func(a, b *entry) int { return int(a.at - b.at) })
			first, at := s.First()
			require.Equal(t, least.at, at)
			require.Equal(t, at, first.at)
		}
	}
}

// TestNext: a third of the TTL later, never before the last one began, and the same instant for
// locks due within a tick.
func TestNext(t *testing.T) {
	for _, ttl := range []time.Duration{renewal.MinTTL, 100 * time.Millisecond, time.Second, 10 * time.Second, 24 * time.Hour} {
		instants := map[clock.Instant]bool{}
		for began := clock.Instant(0); began < second/50; began = began.Add(99 * time.Microsecond) {
			next := renewal.Next(began, ttl)
			instants[next] = true
			require.Greater(t, next, began)
			require.LessOrEqual(t, next, began.Add(ttl/3))
			require.Greater(t, next, began.Add(ttl/3-10*time.Millisecond))
		}
		require.LessOrEqual(t, len(instants), 21)
		if ttl >= time.Second {
			require.LessOrEqual(t, len(instants), 3)
		}
	}
}

// TestRetry: tries go on while validity is left, and become more frequent.
func TestRetry(t *testing.T) {
	for _, random := range []float64{0, 0.999} {
		for _, left := range []clock.Instant{second / 50, 6 * second, 3600 * second} {
			tries, now, last := 0, clock.Instant(0), clock.Forever
			for ; now < left; tries++ {
				next := renewal.Retry(now, left, random)
				require.GreaterOrEqual(t, next.Sub(now), time.Millisecond)
				require.LessOrEqual(t, next.Sub(now), time.Second)
				require.LessOrEqual(t, next.Sub(now), last)
				last, now = next.Sub(now), next
			}
			require.GreaterOrEqual(t, tries, 6)
			require.Less(t, now, left.Add(time.Millisecond), "the last try comes late")
		}
	}
}
