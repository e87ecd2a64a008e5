package growth

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/result"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
)

func TestHeldAndSeveral(t *testing.T) {
	servers := fakeredis.StartN(t, 3)
	timing = harness.Timing{Window: 50 * time.Millisecond}
	var all []result.Note
	note := func(n result.Note) { all = append(all, n) }
	require.NoError(t, held(t.Context(), fakeredis.Addrs(servers), note, 6_000))
	require.Equal(t, "each lock", all[0].What)
	require.Equal(t, result.Figure{Value: 0, Unit: "failed"}, all[len(all)-1].Figures[1])
	for _, s := range servers {
		require.Eventually(t, func() bool { return s.Len() == 0 }, time.Minute, time.Millisecond, "held locks are released")
	}

	var pairs float64
	for ; pairs == 0 && timing.Window < time.Minute; timing.Window *= 4 { // a busy machine takes longer for a pair
		all = nil
		require.NoError(t, several(t.Context(), fakeredis.Addrs(servers), note))
		require.Len(t, all, len(clients))
		for _, n := range all {
			pairs += n.Figures[0].Value
		}
	}
	require.Positive(t, pairs)
}

func TestTheLocksShare(t *testing.T) {
	require.InDelta(t, 34.19, focused([]byte("Active filters:\n   focus=x\nShowing nodes accounting for 1.06s, 34.19% of 3.10s total\n      flat")), 0)
	require.Zero(t, focused([]byte("Showing nothing")))
}
