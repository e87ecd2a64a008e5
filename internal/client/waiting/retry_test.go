package waiting

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/client/engine"
)

// TestPausesStayInTheirBounds, which double, for all that a Config can have.
func TestPausesStayInTheirBounds(t *testing.T) {
	const ms = time.Millisecond
	least := func(time.Duration) time.Duration { return 0 }
	most := func(n time.Duration) time.Duration { return n - 1 }
	for given, want := range map[Retry]struct {
		min time.Duration
		max []time.Duration // after the first attempts; the last for all others
	}{
		{}:                              {50 * ms, []time.Duration{100 * ms, 200 * ms, 250 * ms}},
		{Min: time.Second}:              {time.Second, []time.Duration{time.Second}},
		{Max: 10 * ms}:                  {2 * ms, []time.Duration{4 * ms, 8 * ms, 10 * ms}},
		{Min: 3 * ms, Max: time.Second}: {3 * ms, []time.Duration{6 * ms, 12 * ms, 24 * ms, 48 * ms, 96 * ms, 192 * ms, 384 * ms, 768 * ms, time.Second}},
		{Min: 1, Max: 5 * ms}:           {1, []time.Duration{ms, 2 * ms, 4 * ms, 5 * ms}},
		{Min: 7 * ms, Max: 7 * ms}:      {7 * ms, []time.Duration{7 * ms}},
		{Max: 1, Attempts: 2}:           {1, []time.Duration{1}},
		{Min: engine.MaxTTL}:            {engine.MaxTTL, []time.Duration{engine.MaxTTL}},
	} {
		r, err := given.Check()
		require.NoError(t, err)
		for i := range 100 {
			require.Equal(t, want.min, r.pause(i+1, least), given)
			require.Equal(t, want.max[min(i, len(want.max)-1)], r.pause(i+1, most), given)
		}
		require.Equal(t, r.Max, r.pause(math.MaxInt, most))
	}
}

// TestTriesHearTheLatest: of the attempts of a caller and of its lines the last one to end counts. A hook may have kept
// the caller after its own.
func TestTriesHearTheLatest(t *testing.T) {
	tries := testLines().NewTries("k", 0)
	tries.Ended = 10
	require.True(t, tries.ShouldRetry(engine.ErrTaken))
	tries.Hear(5, engine.ErrNoQuorum)
	require.Equal(t, engine.ErrTaken, tries.Last)
	tries.Hear(20, nil)
	tries.Hear(11, engine.ErrNoQuorum)
	require.Equal(t, engine.ErrNoQuorum, tries.Last)
}
