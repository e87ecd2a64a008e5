package clock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/clock"
)

// TestSystem counts from its making, above zero, goes forward, and allocates nothing.
func TestSystem(t *testing.T) {
	c := clock.New()
	before := c.Now()
	require.Greater(t, before, time.Duration(0))
	require.Less(t, before, time.Hour)
	last := before
	for start := time.Now(); time.Since(start) < 5*time.Millisecond; {
		now := c.Now()
		require.GreaterOrEqual(t, now, last)
		last = now
	}
	require.GreaterOrEqual(t, c.Now()-before, 5*time.Millisecond, "it is a clock, not a counter")
	require.Zero(t, testing.AllocsPerRun(100, func() { c.Now() }))
}

// TestSuspended: what the machine was suspended for is counted once, by the next reading, on the clock of
// that machine alone. A difference within the error of reading two clocks is none.
func TestSuspended(t *testing.T) {
	other := clock.New()
	before := other.Now()
	for range 1000 {
		other.Now()
	}
	require.Less(t, other.Now()-before, time.Second, "there was no suspend")

	boot, ahead := time.Hour, time.Duration(0) // it had been suspended before
	source := clock.Source{Monotonic: func() time.Duration { return boot - time.Hour }}
	source.Boottime = func() (time.Duration, bool) { return boot + ahead, true }
	undo := clock.Play(func() clock.Source { return source })
	c := clock.New()
	undo()
	before = c.Now()
	ahead = time.Millisecond
	require.Equal(t, before, c.Now())
	ahead = 2 * time.Hour
	require.Equal(t, before+2*time.Hour, c.Now())
	require.Equal(t, before+2*time.Hour, c.Now())
	boot += time.Second
	require.Equal(t, before+2*time.Hour+time.Second, c.Now())

	source.Boottime = func() (time.Duration, bool) { return time.Hour, false }
	c = clock.NewOn(source)
	before = c.Now()
	boot += time.Minute
	require.Equal(t, before+time.Minute, c.Now(), "there is no such clock")
}

// TestLooks: the dear clock is read only where the time of day shows that the machine may have been
// suspended.
func TestLooks(t *testing.T) {
	mono, slept, wall, asked := time.Hour, time.Duration(0), 24*time.Hour, 0
	c := clock.NewOn(clock.Source{
		Monotonic: func() time.Duration { return mono },
		Boottime:  func() (time.Duration, bool) { asked++; return mono + slept, true },
		Both:      func() (time.Duration, time.Duration) { return mono, mono + wall },
	})
	before := c.Now()
	asked = 0
	for i := range 100 {
		mono += time.Second
		wall += time.Microsecond // as the two are read one after the other
		require.Equal(t, before+time.Duration(i+1)*time.Second, c.Now())
	}
	require.Zero(t, asked)
	slept, wall = time.Minute, wall+time.Minute
	require.Equal(t, before+100*time.Second+time.Minute, c.Now())
	require.Equal(t, 1, asked)
	wall -= time.Hour // it is set, and nothing more
	require.Equal(t, before+100*time.Second+time.Minute, c.Now())
	require.Equal(t, before+100*time.Second+time.Minute, c.Now())
	require.Equal(t, 2, asked)
}
