package clock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/clock"
)

// TestSystem counts from the start of the process, goes forward, and allocates
// nothing.
func TestSystem(t *testing.T) {
	before := clock.System().Now()
	require.GreaterOrEqual(t, before, time.Duration(0))
	require.Less(t, before, time.Hour)
	last := before
	for start := time.Now(); time.Since(start) < 5*time.Millisecond; {
		now := clock.System().Now()
		require.GreaterOrEqual(t, now, last)
		last = now
	}
	require.GreaterOrEqual(t, clock.System().Now()-before, 5*time.Millisecond, "it is a clock, not a counter")
	require.Zero(t, testing.AllocsPerRun(100, func() { clock.System().Now() }))
}

// TestFake moves when it is told to, and does not go back.
func TestFake(t *testing.T) {
	f := clock.NewFake()
	f.Advance(3 * time.Second)
	require.Equal(t, 3*time.Second, f.Now())
	require.Panics(t, func() { f.Advance(-1) })
}

// TestSync: what the machine was suspended for is added once, and a difference within the
// error of reading is none.
func TestSync(t *testing.T) {
	before := clock.System().Now()
	for range 1000 {
		clock.Sync()
	}
	require.Less(t, clock.System().Now()-before, time.Second, "there was no suspend")
	restore := clock.FakeSuspend(time.Hour)
	defer restore()
	clock.Sync()
	clock.Sync()
	require.InDelta(t, time.Hour, clock.System().Now()-before, float64(time.Second))
	restore()
	require.Less(t, clock.System().Now()-before, time.Second)
}
