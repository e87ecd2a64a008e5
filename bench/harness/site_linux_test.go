package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/realredis"
)

// ping says how a node answers to a new connection within a moment.
func ping(addr string) error {
	const moment = 200 * time.Millisecond
	c, err := net.DialTimeout("tcp", addr, moment)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(moment))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	reply := make([]byte, 16)
	n, err := c.Read(reply)
	if err == nil && string(reply[:n]) != "+PONG\r\n" {
		err = fmt.Errorf("answered %q", reply[:n])
	}
	return err
}

// answers waits until a node does: on a machine that is busy enough a moment is
// not always one.
func answers(t *testing.T, addr string) {
	require.Eventually(t, func() bool { return ping(addr) == nil }, time.Minute, time.Millisecond)
}

func TestFaultsAreMadeAndEnd(t *testing.T) {
	for _, real := range []bool{false, true} {
		if _, err := realredis.Usual.Command(); real && err != nil {
			if os.Getenv(realredis.EnvRequire) == "1" {
				require.NoError(t, err)
			}
			t.Skip(err)
		}
		s, err := open(t.Context(), Options{Redis: real, Masters: []int{1, 3}, Faults: Faults})
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		for _, fault := range Faults {
			cell := Cell{Nodes: 3, Fault: fault}
			require.NoError(t, s.prepare(cell, 0))
			nodes := s.nodes(cell)
			require.NotEqual(t, s.addrs[victim], nodes[victim])
			require.Equal(t, s.addrs[1:], nodes[1:])
			answers(t, nodes[victim])
			d := s.disturbance(cell, 0)
			if fault == NoFault {
				require.Nil(t, d)
				continue
			}
			require.NoError(t, d.Strike())
			if fault == Slow {
				start := time.Now()
				answers(t, nodes[victim])
				require.GreaterOrEqual(t, time.Since(start), slowness)
			} else {
				require.Error(t, ping(nodes[victim]), fault)
			}
			answers(t, nodes[1])
			require.NoError(t, d.Heal())
			answers(t, nodes[victim])
		}
		require.Error(t, s.disturbance(Cell{Fault: "fire"}, 0).Strike())
	}
}

func TestRoundTripsAreMade(t *testing.T) {
	const rtt = 30 * time.Millisecond
	s, err := open(t.Context(), Options{Masters: []int{2}, RTT: []time.Duration{0, rtt}})
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	require.Equal(t, s.addrs[:1], s.nodes(Cell{Nodes: 1}), "without the proxy")
	far := Cell{Nodes: 2, RTT: rtt}
	require.NoError(t, s.prepare(far, time.Millisecond))
	for _, addr := range s.nodes(far) {
		start := time.Now()
		answers(t, addr)
		require.GreaterOrEqual(t, time.Since(start), rtt)
	}
	trips, err := roundTrips(t.Context(), s.nodes(far))
	require.NoError(t, err)
	require.EqualValues(t, 2*pings, trips.Count())
	require.GreaterOrEqual(t, trips.Quantile(0), rtt*99/100)
}

func TestMainWithFaults(t *testing.T) {
	var stdout, stderr bytes.Buffer
	p := program(&still{name: "mine"}, &still{name: "sad", openErr: errors.New("no luck")})
	var reported *Run
	p.Report = func(dir string, run *Run) error {
		require.Equal(t, "somewhere", dir)
		reported = run
		return nil
	}
	p.Notes = []string{"as it is"}
	steps := 0
	p.Progress = func(_ io.Writer, n int) Progress { steps += n; return &countdown{&steps} }
	args := append(quick, "-scenario", "uncontended", "-fault", "hung,back", "-report", "somewhere")
	require.Zero(t, p.Main(args, &stdout, &stderr), "a driver that fails while a node is unwell is a finding: %s", stderr.String())
	out := stdout.String()
	for _, want := range []string{"node 1 hung", "node 1 dies and comes back", "goroutines±", "sad: open: no luck", "- as it is\n"} {
		require.Contains(t, out, want)
	}
	require.Zero(t, steps)
	require.Len(t, reported.Groups, 4)
	require.Empty(t, reported.Groups[0].Rows[0].Result.Timeline)
	require.Len(t, reported.Groups[2].Rows[0].Result.Timeline, timelineSlots)
	require.Positive(t, reported.Groups[2].Rows[0].Result.Latency.Count())

	stdout.Reset()
	p.Main(append(quick, "-scenario", "uncontended", "-fault", "back", "-json", "-driver", "mine"), &stdout, &stderr)
	var r Result
	require.NoError(t, json.Unmarshal([]byte(strings.SplitN(stdout.String(), "\n", 2)[0]), &r))
	require.Equal(t, Back, r.Fault)
	require.Positive(t, r.Descriptors)
	require.Positive(t, r.RSSMiB)
	require.Positive(t, r.PingP50)
}

func TestMainShowsTheHalves(t *testing.T) {
	var stdout, stderr bytes.Buffer
	p := program(&still{name: "mine"}, &still{session: runner{run: func(_ context.Context, p *Probe) error {
		for p.Running() {
			p.Pairs(1, time.Millisecond) // has no halves
			runtime.Gosched()
		}
		return nil
	}}, name: "whole"})
	require.Zero(t, p.Main(append(quick, "-c", "1", "-scenario", "uncontended", "-rtt", "0s,1ms", "-jitter", "1ms"), &stdout, &stderr), stderr.String())
	require.Regexp(t, `round trip \+0s\ndriver .*errors   pairs/s min`, stdout.String())
	require.Regexp(t, `round trip \+1ms to \+2ms; a PING takes \d{4,} µs, p99 \d{4,} µs\ndriver .* acq p50 .* acq/ping `, stdout.String())
	require.Regexp(t, `\nwhole .* - +- +- +- +- `, stdout.String())
}

// countdown is a [Progress].
type countdown struct{ left *int }

func (c *countdown) Step(string) { *c.left-- }
func (c *countdown) Clear()      {}
