package waiting

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/holding"
)

// still is a clock that stands still.
type still clock.Instant

func (s still) Now() clock.Instant { return clock.Instant(s) }

// TestRuns: of keys that a process has again and again each is looked at, and as many as a bucket has cells at the same
// time. More than that have turns: the cells of a bucket end their runs one after another.
func TestRuns(t *testing.T) {
	const work, step = 2 * time.Millisecond, 6 * time.Millisecond
	turn := func(all *turns, key uint64, at clock.Instant) (what due) {
		hash := (key*uint64(len(all.buckets)) + 7) * shards // all of one bucket
		what, _ = all.note(hash, holding.Turn{Wanted: at, Granted: at, Waits: true}, at.Add(work), false)
		_, _ = all.take(hash, still(at.Add(work)))
		return what
	}
	for keys, within := range map[uint64]time.Duration{1: step, 4: 20 * step, 5: time.Second, 12: 8 * time.Second} {
		var all turns
		found := map[uint64]time.Duration{}
		looks, began := 0, clock.Instant(time.Hour)
		random := rand.New(rand.NewPCG(keys, 1))
		for at := time.Duration(0); at <= 10*time.Second; at += step {
			for key := range keys {
				if turn(&all, key, began.Add(at+time.Duration(random.Int64N(int64(step/2))))) == aLook {
					looks++
					if found[key] == 0 {
						found[key] = at + 1
					}
				}
			}
		}
		require.Len(t, found, int(keys), "of %d keys", keys)
		if keys <= 4 {
			require.Less(t, looks, 4*60, "pauses grow")
		}
		for _, at := range found {
			require.LessOrEqual(t, at, within+2*step, "of %d keys", keys)
		}
	}
	var all turns
	for i := range clock.Instant(100) { // a break ends a run
		require.Equal(t, nothing, turn(&all, 7, i*clock.Instant(300*time.Millisecond)))
	}

	// What is due counts while the run may go on.
	for _, pause := range []time.Duration{2 * time.Millisecond, time.Minute} {
		began, hash := clock.Instant(time.Hour+pause), (11+uint64(pause))*shards
		what, _ := all.note(hash, holding.Turn{Wanted: began, Granted: began, Waits: true}, began.Add(time.Second), false)
		require.Equal(t, aLook, what)
		what, _ = all.take(hash, still(began.Add(time.Second+pause)))
		require.Equal(t, pause < time.Minute, what == aLook)
	}
}
