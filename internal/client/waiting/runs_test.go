package waiting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// TestRuns: of keys that a process has again and again each is found to be, and as many as a bucket has cells at the same
// time. More than that have turns: the cells of a bucket end their runs one after another.
func TestRuns(t *testing.T) {
	const long, step = 500 * time.Millisecond, 3 * time.Millisecond
	for keys, within := range map[uint64]time.Duration{1: long, 4: long, 5: 3 * long, 12: 8 * long} {
		var all runs
		found := map[uint64]time.Duration{}
		looks, began := 0, clock.Instant(time.Hour)
		for at := time.Duration(0); at <= 10*long; at += step {
			for key := range keys {
				hash := (key*uint64(len(all)) + 7) * shards // all of one bucket
				if all.isSteady(hash, began.Add(at+time.Duration(key*7919%uint64(step))), long) {
					looks++
					if found[key] == 0 {
						found[key] = at
					}
				}
			}
		}
		require.Len(t, found, int(keys))
		require.LessOrEqual(t, looks, 4*10)
		for _, at := range found {
			require.LessOrEqual(t, at, within+2*step, "of %d keys", keys)
		}
	}
	var all runs
	for i := range clock.Instant(100) { // a break ends a run
		require.False(t, all.isSteady(7, i*clock.Instant(300*time.Millisecond), long))
	}
}
