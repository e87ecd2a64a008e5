package metrics

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestNamesStay: users have the names in their queries and alerts, so the whole text is compared.
func TestNamesStay(t *testing.T) {
	s := Stats[Node]{
		Acquire: Results{Won: 1, Denied: 2, NoQuorum: 3, Expired: 4, Cancelled: 5, Refused: 6}, Extend: Results{Won: 7}, Release: Results{Won: 8},
		Held: 9, KeptAlive: 10, InLine: 11, Lost: 12, HandedOver: 13, Cleanups: 14, Batches: 15, Operations: 16, Waiting: 17, InFlight: 18,
		Nodes: []Node{
			{Addr: "10.0.0.1:6379", GroupReady: true, Up: true, Server: "Redis 8.0.2", Dialect: "DELEX, SET IFEQ", Connects: 1, RoundTrips: 2, RoundTrip: 150 * time.Microsecond, InFlight: 3, Granted: 4, Denied: 5, Failed: 6},
			{Addr: "/a \"b\"\\\n", Group: 1, Err: errors.New("down"), NoVote: errors.New("restarted"), NoVoteFor: 1500 * time.Millisecond},
		},
	}
	s.Waits.Granted, s.Waits.HandedOver, s.Waits.GaveUp, s.Waits.UsedUp, s.Waits.Closed, s.Waits.Failed = 19, 20, 21, 22, 23, 24
	var h Histogram
	for _, d := range []time.Duration{-1, 100 * time.Microsecond, 100*time.Microsecond + 1, time.Second, 30 * time.Second, time.Hour} {
		h.Add(d)
	}
	s.AcquireTimes = h
	s.WaitTimes.Counts[3], s.WaitTimes.Sum = 25, 26*time.Millisecond

	var got bytes.Buffer
	require.NoError(t, Write(&got, s, func(n Node) Node { return n }))
	want, err := os.ReadFile("testdata/metrics.txt")
	require.NoError(t, err)
	wanted, written := strings.Split(string(want), "\n"), strings.Split(got.String(), "\n")
	for _, line := range wanted {
		require.True(t, slices.Contains(written, line), "%s is gone: names stay, since users have them in queries and alerts; a new metric gets a new name", line)
	}
	for _, line := range written {
		require.True(t, slices.Contains(wanted, line), "%s is new: add it to testdata/metrics.txt, to the numbers above, and to bench/metrics", line)
	}
	require.True(t, slices.Equal(wanted, written), "the order of testdata/metrics.txt is another one")

	refused := errors.New("the connection has gone")
	require.Equal(t, refused, Write(failing{refused}, s, func(n Node) Node { return n }))
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }
