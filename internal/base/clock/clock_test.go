package clock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// TestSystem: the clock counts from its making, above zero, goes forward, and allocates nothing.
func TestSystem(t *testing.T) {
	c := clock.New()
	before := c.Now()
	require.Positive(t, before)
	require.Less(t, before, clock.Instant(time.Hour))
	last := before
	for start := time.Now(); time.Since(start) < 5*time.Millisecond; {
		now := c.Now()
		require.GreaterOrEqual(t, now, last)
		last = now
	}
	require.GreaterOrEqual(t, c.Now().Sub(before), 5*time.Millisecond, "it is a clock, not a counter")
	require.Zero(t, testing.AllocsPerRun(100, func() { c.Now() }))
}

// TestSuspended: the time of a suspension is counted once, by the next reading, on the clock of this machine alone. A
// difference within the error of reading two clocks does not count.
func TestSuspended(t *testing.T) {
	other := clock.New()
	before := other.Now()
	for range 1000 {
		other.Now()
	}
	require.Less(t, other.Now().Sub(before), time.Minute, "there was no suspend")

	mono, slept, looks, hasBoottime := time.Hour, time.Hour, 0, true // it had been suspended before
	source := clock.Source{
		Monotonic: func() time.Duration { return mono },
		Ahead:     func() (time.Duration, bool) { looks++; return slept, hasBoottime },
	}
	undo := clock.Play(func() clock.Source { return source })
	c := clock.New()
	undo()
	before = c.Now()
	suspend := func(d time.Duration) {
		mono += time.Millisecond // of being frozen and thawed
		before = before.Add(time.Millisecond)
		slept += d
	}
	suspend(time.Millisecond)
	require.Equal(t, before, c.Now())
	suspend(2 * time.Hour)
	before = before.Add(time.Millisecond + 2*time.Hour)
	require.Equal(t, before, c.Now())
	require.Equal(t, before, c.Now())
	mono += time.Second
	require.Equal(t, before.Add(time.Second), c.Now())

	looks = 0
	for range 100 {
		mono += 20 * time.Microsecond
		c.Now()
	}
	require.Equal(t, 10, looks, "the dear clock is read where the last look is 200 us old")

	hasBoottime = false
	c = clock.NewOn(source)
	before = c.Now()
	suspend(time.Minute)
	require.Equal(t, before, c.Now(), "there is no such clock")
}
