package ours

import (
	"bytes"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/harness"
	"github.com/redlock-go/redlock/bench/result"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/realredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
)

// contenders are the drivers of the processes that tests start.
var contenders = harness.Program{Drivers: []harness.Driver{Driver{}, Driver{Semaphore: 8}, Served{}}, Chosen: []string{"redlock"}}

func TestMain(m *testing.M) {
	testkit.ChildrenEndAtOnce()
	ServeIfFront()
	contenders.ServeIfContender()
	harness.ServeIfMasters()
	os.Exit(m.Run())
}

// contend runs cells.
func contend(t *testing.T, args ...string) (all []*result.Result) {
	if runtime.GOOS != "linux" {
		t.Skip("processes that share a clock, and the count of descriptors, need Linux")
	}
	var out, printed bytes.Buffer
	require.Zero(t, contenders.Main(append([]string{"-json"}, args...), &out, &printed), printed.String()+out.String())
	lines, err := result.Read(&out, "")
	require.NoError(t, err)
	for _, l := range lines {
		if l.Result != nil {
			all = append(all, l.Result)
		}
	}
	return all
}

// TestCrowds: those who share a lock, and those who want it for themselves, are at work together; one that crashes keeps a
// writer out.
func TestCrowds(t *testing.T) {
	all := contend(t, "-n", "3", "-d", "1s", "-warmup", "500ms", "-crowd", "2x2:read:1ms+1x1:write:1ms+1x1:poll:1ms,1x2:crash:1h+1x1:write:1ms")
	require.Len(t, all, 5)
	for _, r := range all[:2] {
		require.Positive(t, r.Pairs, r.Crowd)
	}
	require.Zero(t, all[4].Pairs)
	require.Greater(t, all[4].Max, 9e5)
}

// TestServed: clients of a front end never hold a lock beside each other, or the cell would fail, and each release in time has
// released it.
func TestServed(t *testing.T) {
	window := "500ms"
	if testkit.Long() {
		window = "20s"
	}
	for _, masters := range []string{"embedded", "redis"} {
		t.Run(masters, func(t *testing.T) {
			if _, err := realredis.Usual.Command(); masters == "redis" && err != nil {
				realredis.Start(t) // skips, or fails
			}
			for _, r := range contend(t, "-server", masters, "-driver", "redlock-serve", "-scenario", "contended", "-c", "4,16", "-hold", "2ms", "-warmup", "50ms", "-d", window) {
				require.Positive(t, r.Pairs)
				require.Zero(t, r.Errors, r.FirstError)
			}
		})
	}
}

// TestMuch: what is held is measured and given back, what is kept alive is extended, and several clients share the load.
func TestMuch(t *testing.T) {
	servers := fakeredis.StartN(t, 3)
	nodes := strings.Join(fakeredis.Addrs(servers), ",")
	all := contend(t, "-nodes", nodes, "-scenario", "held,kept", "-c", "2000", "-ttl", "4s")
	all = append(all, contend(t, "-nodes", nodes, "-scenario", "idle", "-c", "20")...)
	require.Len(t, all, 3)
	for _, r := range all {
		require.Zero(t, r.Errors, r.Scenario)
		require.Positive(t, r.BytesEach, r.Scenario)
	}
	require.InDelta(t, 2000, all[0].Pairs, 0)
	require.Greater(t, all[1].Pairs, 1000.0, "each is extended at a third of its TTL")
	require.GreaterOrEqual(t, all[2].GoroutinesEach, 1.0)
	for _, s := range servers {
		require.Eventually(t, func() bool { return s.Len() == 0 }, time.Minute, time.Millisecond, "held locks are released")
	}
	var pairs float64
	for window := 50 * time.Millisecond; pairs == 0 && window < time.Minute; window *= 4 { // a busy machine takes longer for a pair
		pairs = contend(t, "-nodes", nodes, "-scenario", "uncontended", "-c", "8", "-clients", "4", "-d", window.String())[0].Pairs
	}
	require.Positive(t, pairs)
}

// TestPermits: several hold a key at once, each a permit of its own, or the cell would fail.
func TestPermits(t *testing.T) {
	all := contend(t, "-n", "3", "-d", "1s", "-scenario", "contended", "-driver", "redlock-permits", "-procs", "2", "-c", "8", "-hold", "10ms")
	require.Len(t, all, 1)
	require.Greater(t, all[0].IdealShare, 1.5)
}

// TestProcessesThatAreKilled: the key goes on from hand to hand, and a holder's in
// the end. A busy machine needs a longer window.
func TestProcessesThatAreKilled(t *testing.T) {
	for window := 500 * time.Millisecond; ; window *= 2 {
		require.Less(t, window, 10*time.Second)
		var idle, orphans int
		for _, r := range contend(t, "-scenario", "contended", "-c", "2", "-procs", "3", "-hold", "2ms", "-ttl", "100ms", "-warmup", "50ms",
			"-fault", "kill-waiter,kill-holder", "-d", window.String()) {
			switch {
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
