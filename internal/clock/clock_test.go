package clock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/clock"
)

var (
	_ clock.Clock = clock.System()
	_ clock.Clock = clock.NewFake()
)

// TestSystemGoesForward reads one clock from several goroutines: no reading is
// before the one before it, also across goroutines.
func TestSystemGoesForward(t *testing.T) {
	before := clock.System().Now()
	require.GreaterOrEqual(t, before, time.Duration(0))
	require.Less(t, before, time.Hour, "the epoch is the start of the process")

	var readers sync.WaitGroup
	for range 4 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			last := before
			for range 10_000 {
				now := clock.System().Now()
				if now < last {
					t.Errorf("went back from %v to %v", last, now)
					return
				}
				last = now
			}
		}()
	}
	readers.Wait()
}

// TestSystemKeepsTime: it is a clock, not a counter.
func TestSystemKeepsTime(t *testing.T) {
	c := clock.System()
	before := c.Now()
	time.Sleep(5 * time.Millisecond)
	require.GreaterOrEqual(t, c.Now()-before, 5*time.Millisecond)
}

func TestFakeMovesWhenTold(t *testing.T) {
	f := clock.NewFake()
	require.Zero(t, f.Now())
	require.Zero(t, f.Now())
	f.Advance(3 * time.Second)
	f.Advance(0)
	f.Advance(time.Nanosecond)
	require.Equal(t, 3*time.Second+1, f.Now())
}

func TestFakeDoesNotGoBack(t *testing.T) {
	f := clock.NewFake()
	f.Advance(time.Second)
	require.Panics(t, func() { f.Advance(-1) })
	require.Equal(t, time.Second, f.Now())
}

// TestFakeIsShared: advances of several goroutines add up, and a reader among
// them sees time go forward.
func TestFakeIsShared(t *testing.T) {
	f := clock.NewFake()
	var movers sync.WaitGroup
	for range 4 {
		movers.Add(1)
		go func() {
			defer movers.Done()
			last := f.Now()
			for range 1000 {
				f.Advance(time.Microsecond)
				now := f.Now()
				if now <= last {
					t.Errorf("from %v to %v", last, now)
					return
				}
				last = now
			}
		}()
	}
	movers.Wait()
	require.Equal(t, 4*time.Millisecond, f.Now())
}

func BenchmarkSystem(b *testing.B) {
	b.ReportAllocs()
	c := clock.System()
	for b.Loop() {
		c.Now()
	}
}
