package harness

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestFailedPairs: a pair that fails counts in the latency with its whole time, and is no pair.
func TestFailedPairs(t *testing.T) {
	var phase atomic.Int32
	phase.Store(counting)
	p := &Probe{phase: &phase}
	p.Pairs(9, time.Millisecond)
	p.Failed(errors.New("late"), 50*time.Millisecond)
	other := &Probe{phase: &phase}
	other.Pairs(1, time.Millisecond)
	p.merge(other)
	from, to := &sample{at: time.Now()}, &sample{}
	to.at = from.at.Add(time.Second)
	r := figures(p, from, to)
	require.Equal(t, 10.0, r.Pairs)
	require.Equal(t, 1.0, r.Errors)
	require.InDelta(t, 50_000, r.Max, 2_000)
	require.InDelta(t, 50_000, r.P99, 2_000)
	require.Less(t, r.P50, 1_100.0)
}
