package growth

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/ours"
	"github.com/redlock-go/redlock/bench/result"
	"github.com/redlock-go/redlock/internal/fakeredis"
)

// TestMain lets the test binary stand for the program where that runs itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-json" {
		p := harness.Program{Drivers: []harness.Driver{ours.Driver{}}, Chosen: []string{ours.Driver{}.Name()}}
		os.Exit(p.Main(os.Args[1:], os.Stdout, os.Stderr))
	}
	timing = harness.Timing{Window: 50 * time.Millisecond}
	os.Exit(m.Run())
}

func TestHeldLocksAreGivenBack(t *testing.T) {
	servers := fakeredis.StartN(t, 3)
	var told []result.Note
	require.NoError(t, hold(t.Context(), fakeredis.Addrs(servers), func(n result.Note) { told = append(told, n) }, 10_000))
	require.Equal(t, "each lock", told[0].What)
	require.Equal(t, result.Figure{Value: 0, Unit: "failed"}, told[len(told)-1].Figures[1])
	for _, s := range servers {
		require.Eventually(t, func() bool { return s.Len() == 0 }, time.Minute, time.Millisecond)
	}
}

func TestSeveral(t *testing.T) {
	addrs := fakeredis.Addrs(fakeredis.StartN(t, 3))
	var told []result.Note
	note := func(n result.Note) { told = append(told, n) }
	require.NoError(t, clients(t.Context(), addrs, note))
	require.NoError(t, processes(t.Context(), addrs, note))
	require.Len(t, told, 2*len(several))
	var pairs float64
	for _, n := range told {
		require.Equal(t, "pairs/s", n.Figures[0].Unit)
		pairs += n.Figures[0].Value // of one there may be none on a machine that is busy
	}
	require.Positive(t, pairs)
}
