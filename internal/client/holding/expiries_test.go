package holding

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// TestLateReleases: locks that are released long after they have ended leave nothing behind, although no call
// asks for the count.
func TestLateReleases(t *testing.T) {
	var now testkit.Clock
	x := expiries{clock: &now}
	const (
		each = 1 << grain
		ttl  = cells / 2 // in grains; a cell is taken over half a turn after its grain
	)
	var held []clock.Instant
	for range 10 * cells {
		now.Advance(each)
		until := now.Now() + ttl*each
		x.add(until, 1)
		held = append(held, until)
		if len(held) > 2*cells {
			x.add(held[0], -1)
			held = held[1:]
		}
		require.LessOrEqual(t, len(x.more), 3*cells)
	}
	require.InDelta(t, ttl, x.count(), 1)
}
