package harness

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/result"
	"github.com/redlock-go/redlock/internal/test/realredis"
)

// answers waits until a node does: on a machine that is busy enough a moment is
// not always one.
func answers(t *testing.T, addr string) {
	require.Eventually(t, func() bool { return pingNode(t.Context(), addr, 10*time.Second, new(Histogram)) == nil }, time.Minute, time.Millisecond)
}

func TestFaultsAreMadeAndEnd(t *testing.T) {
	t.Parallel()
	for _, real := range []bool{false, true} {
		if _, err := realredis.Usual.Command(); real && err != nil {
			if os.Getenv(realredis.EnvRequire) == "1" {
				require.NoError(t, err)
			}
			t.Skip(err)
		}
		s, err := open(Options{Redis: real, Masters: []int{1, 3}, RTT: []time.Duration{0}, Faults: faults})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		for _, fault := range faults {
			cell := result.Cell{Nodes: 3, Fault: fault}
			require.NoError(t, s.prepare(cell))
			nodes := s.nodes(cell)
			require.NotEqual(t, s.addrs[victim], nodes[victim])
			require.Equal(t, s.addrs[1:], nodes[1:])
			answers(t, nodes[victim])
			d := s.disturbance(cell)
			if fault == result.NoFault || fault.OfClients() {
				require.Nil(t, d)
				continue
			}
			var before int
			if real {
				before = s.fleet.Servers[victim].PID()
			}
			require.NoError(t, d.Strike())
			switch fault {
			case result.Restarting:
				answers(t, nodes[victim])
				require.True(t, !real || s.fleet.Servers[victim].PID() != before)
			case result.Slow:
				start := time.Now()
				answers(t, nodes[victim])
				require.GreaterOrEqual(t, time.Since(start), slowness)
			default:
				require.Error(t, pingNode(t.Context(), nodes[victim], 200*time.Millisecond, new(Histogram)), fault)
			}
			answers(t, nodes[1])
			require.NoError(t, d.Heal())
			answers(t, nodes[victim])
		}
		require.Error(t, s.disturbance(result.Cell{Fault: "fire"}).Strike())
	}
}

func TestRoundTripsAreMade(t *testing.T) {
	t.Parallel()
	const rtt = 10 * time.Millisecond
	s, err := open(Options{Masters: []int{2}, RTT: []time.Duration{0, rtt}})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, s.addrs[:1], s.nodes(result.Cell{Nodes: 1}), "without the proxy")
	far := result.Cell{Nodes: 2, RTT: rtt, Jitter: time.Millisecond}
	require.NoError(t, s.prepare(far))
	for _, addr := range s.nodes(far) {
		start := time.Now()
		answers(t, addr)
		require.GreaterOrEqual(t, time.Since(start), rtt)
	}
	trips := s.roundTrips(t.Context(), far)
	require.EqualValues(t, 2*pings, trips.Count())
	require.GreaterOrEqual(t, trips.Quantile(0), rtt*99/100)
}
