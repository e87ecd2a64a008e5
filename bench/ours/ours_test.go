package ours

import (
	"bytes"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/result"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// contenders are the drivers of the processes that tests start.
var contenders = harness.Program{Drivers: []harness.Driver{Driver{}}, Chosen: []string{"redlock"}}

func TestMain(m *testing.M) {
	testkit.ChildrenEndAtOnce()
	contenders.ServeIfContender()
	harness.ServeIfMasters()
	os.Exit(m.Run())
}

// TestProcessesThatAreKilled: the key goes on from hand to hand, and a holder's in
// the end. A busy machine needs a longer window.
func TestProcessesThatAreKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes that share a clock need Linux")
	}
	for window := 500 * time.Millisecond; ; window *= 2 {
		require.Less(t, window, 10*time.Second)
		var out, printed bytes.Buffer
		args := []string{"-json", "-scenario", "contended", "-c", "2", "-procs", "3", "-hold", "2ms", "-ttl", "100ms", "-warmup", "50ms",
			"-fault", "kill-waiter,kill-holder", "-d", window.String()}
		require.Zero(t, contenders.Main(args, &out, &printed), printed.String()+out.String())
		lines, err := result.Read(&out, "")
		require.NoError(t, err)
		var idle, orphans int
		for _, l := range lines {
			switch r := l.Result; {
			case r == nil:
			case r.Kills == 0 || r.Pairs == 0:
				idle++
			case r.Fault == result.KillHolder && r.OrphanMax > 0:
				orphans++
			}
		}
		if idle == 0 && orphans == len(contenders.Chosen) {
			return
		}
	}
}

func TestEveryShapeOfCell(t *testing.T) {
	addrs := fakeredis.Addrs(fakeredis.StartN(t, 3))
	for _, d := range []harness.Driver{Driver{}, Driver{Portable: true}, Driver{Scripted: true}, Submitter{}} {
		cfg := harness.Config{Nodes: addrs, TTL: 10 * time.Second, Scenario: harness.Uncontended, Concurrency: 2, Keys: [][]string{{"a", "b"}, {"c", "d"}}}
		// On a machine that is busy enough an attempt may fail, or none end
		// in time; not for ever.
		var r result.Result
		for window := 20 * time.Millisecond; r.Pairs == 0; window *= 2 {
			var err error
			r, err = harness.Measure(t.Context(), d, cfg, harness.Timing{Window: window})
			require.NoError(t, err)
		}
		require.Equal(t, d.Name(), r.Driver)
	}
	_, err := Submitter{}.Open(t.Context(), harness.Config{Nodes: addrs, Scenario: harness.Contended})
	require.ErrorAs(t, err, new(harness.Unsupported))
}
