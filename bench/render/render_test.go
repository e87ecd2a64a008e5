package render

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/result"
)

// allLines are two rounds of a run with all that a page can show.
func allLines() []result.Line {
	all := []result.Line{{Head: &result.Head{
		Title: "All", Section: "all", Args: "-c 1,64", Shows: []string{"pairs", "floor", "acquire", "heap"},
		Machine: "a machine", Commit: "abc", Method: "by hand", Notes: []string{"be fair & kind"}, Drivers: []string{"redlock", "floor"},
		Place: "apart: by halves", Own: 2,
		Servers: []result.Server{{Addr: "a:1", What: "Redis 7"}, {Addr: "b:1", Down: "<gone>"}},
	}}}
	healthy := result.Cell{Scenario: "uncontended", Concurrency: 1, Nodes: 5, Fault: result.NoFault, KeyLen: 24}
	busy, hung := healthy, healthy
	busy.Concurrency = 64
	hung.Concurrency, hung.Fault = 64, result.Hung
	for round := 1; round <= 2; round++ {
		for _, cell := range []result.Cell{healthy, busy, hung} {
			for i, driver := range []string{"redlock", "lone", "floor", "dead", "peer"} {
				rate := float64(100*(i+1)*cell.Concurrency) * float64(round)
				r := &result.Result{Driver: driver, Cell: cell, Round: round, Figures: result.Figures{
					PairsPerSec: rate, P50: 1e6 / rate, P99: 3e6 / rate, CPUPerPair: 1e5 / rate, AcquireP50: 7e5 / rate, PingP50: 12, PingP99: 34, Added: 7e5/rate - 12, ServerCPU: 2e3 / rate,
				}}
				switch driver {
				case "lone":
					r.Weaker, r.Errors, r.FirstError = "one server", 1, "<lost>"
				case "dead":
					*r = result.Result{Driver: driver, Cell: cell, Round: round, Error: "hangs <for ever>"}
				}
				all = append(all, result.Line{Result: r})
			}
		}
	}
	return append(all, result.Line{Note: &result.Note{Part: "clients", What: "idle", Figures: []result.Figure{{Value: 12345, Unit: "bytes"}}}})
}

func TestTheSummary(t *testing.T) {
	var out bytes.Buffer
	summarize(&out, result.Collect(allLines()))
	for _, want := range []string{
		"* processors: apart: by halves, unless", "* servers: 1 × Redis 7, 1 × down, unless", "The *floor* is no lock client", "![All](all.svg)", "* b:1 was down: <gone>\n", "## All\n\n`-c 1,64`\n",
		"Pairs per second, by goroutines and fault:\n\n| driver | 1 / healthy | 64 / healthy | 64 / hung |\n|---|---|---|---|\n| **redlock** | 150<br>(100–200) | 9,600<br>(6,400–12,800) |",
		"| *a PING* | 12.0, 34.0 |", "| lone * |", "| **redlock** | 0.33 |", "| dead | – | – | – |\n",
		"MiB of heap and stacks at the end", "| *the servers' limit* |",
		"* no figures of dead: hangs <for ever> (1 / healthy; 64 / healthy; 64 / hung)\n",
		"* errors of lone, of which the first: <lost> (1 / healthy: 2; ",
		"Where redlock is behind, its figure as a multiple of theirs:\n\n* Client CPU, µs per pair – 1 / healthy: peer 5.00;", "* Pairs per second – 1 / healthy: peer 0.20;",
		"clients:\n\n* idle: 12,300 bytes\n", "* lone *: one server, a weaker guarantee", "* be fair & kind\n",
	} {
		require.Contains(t, out.String(), want)
	}
}

// TestScenariosApart: columns that have nothing in common are not in one table, and a driver
// that does not run such cells has the reason once.
func TestScenariosApart(t *testing.T) {
	lines := []result.Line{{Head: &result.Head{}}}
	for _, c := range []result.Cell{
		{Scenario: "uncontended", Concurrency: 1, Nodes: 5, Fault: result.NoFault, KeyLen: 24},
		{Scenario: "uncontended", Concurrency: 64, Nodes: 5, Fault: result.NoFault, KeyLen: 24},
		{Scenario: "contended", Concurrency: 64, Nodes: 5, Fault: result.NoFault, KeyLen: 24, Processes: 1, Keys: 1, TTL: 1},
	} {
		lines = append(lines, result.Line{Result: &result.Result{Driver: "redlock", Cell: c, Figures: result.Figures{PairsPerSec: 7}}})
		if c.Scenario == "contended" {
			lines = append(lines, result.Line{Result: &result.Result{Driver: "floor", Cell: c, Error: "not supported: does not wait", Lacks: true}})
		}
	}
	var out bytes.Buffer
	summarize(&out, result.Collect(lines))
	text := out.String()
	require.Contains(t, text, "| goroutines | driver | Client CPU, µs per pair, and locks a second for which a core of it is enough | p50 of")
	require.Contains(t, text, "| – | 7.00 |\n| 64 | **redlock** |")
	require.Contains(t, text, "contended, concurrency 64, 5 nodes, 1 process:\n\n| driver | Client CPU, µs per pair, and")
	require.Equal(t, 1, strings.Count(text, "not supported"))
	require.Contains(t, text, "* no figures of floor: not supported: does not wait (")
	require.NotContains(t, text, "floor's", "there is none to compare with")
}

// TestTheChart: every driver that has figures is in it, and of the cells those that lie on the axis.
func TestTheChart(t *testing.T) {
	runs := result.Collect(allLines())
	c := NewChart(runs[0])
	require.Equal(t, "all.svg", c.File)
	require.Equal(t, "goroutines", c.Axis)
	require.Equal(t, []string{"1", "64"}, c.Labels)
	require.Equal(t, runs[0].Groups[:2], c.Groups, "those that are healthy")
	require.Equal(t, "uncontended, 5 nodes, 1 × Redis 7, 1 × down", c.About[1])
	require.Contains(t, c.About[2], "commit abc")
	var drivers []string
	for _, r := range c.Drivers {
		drivers = append(drivers, r.Driver)
	}
	require.Equal(t, []string{"redlock", "lone", "floor", "peer"}, drivers)
	require.InDelta(t, 1e6*2/((2e3/500+2e3/1000)/2), c.Limits[0], 1e-6, "of the peer, which asks least of the servers")
	require.Nil(t, NewChart(&result.Run{Groups: runs[0].Groups[:1]}), "nothing varies")
}

func TestDigits(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.0004: "0.000", 0.8567: "0.857", 9.999: "10.00", 43.62: "43.6", 999.7: "1000",
		1234: "1,230", 123456: "123,000", 1234567: "1,230,000", -43.62: "-43.6",
	} {
		require.Equal(t, want, digits(x))
	}
}

// TestScale: what is computed follows from the measured costs, and its assumptions are named.
func TestScale(t *testing.T) {
	lines := []result.Line{{Head: &result.Head{}}}
	for _, c := range []int{64, 512, 4096} {
		cell := result.Cell{Scenario: "uncontended", Concurrency: c, Nodes: 5, Fault: result.NoFault, KeyLen: usualKeyLen}
		lines = append(lines, result.Line{Result: &result.Result{Driver: "redlock", Cell: cell,
			Figures: result.Figures{Pairs: 1, PairsPerSec: float64(c), CPUPerPair: 7, ServerCPU: 35, P50: 100}}})
	}
	for _, n := range []int{1_000, 100_000} {
		lines = append(lines, result.Line{Note: &result.Note{Part: fmt.Sprint(n, " locks kept alive"), What: "each lock",
			Figures: []result.Figure{{Value: float64(n), Unit: "bytes"}, {Value: 0, Unit: "lost"}}}})
	}
	lines = append(lines, result.Line{Note: &result.Note{Part: lockPart, What: "512 callers", Figures: []result.Figure{{Value: 40, Unit: "%"}, {Value: 2, Unit: "µs"}}}})
	var out bytes.Buffer
	summarize(&out, result.Collect(lines))
	for _, want := range []string{
		"| 512 callers | 2.00 µs | 40 % | 1.8 × = 909,000 | 2.1 × = 1,050,000 | 2.3 × = 1,140,000 | 7 |\n",
		"| goroutines | redlock | 64 | 4096 | 1.00 | 0.00 | 0.00 |\n",
		"\n100,000 locks kept alive:\n",
		"| locks kept alive, each lock | 1,000 | 100,000 | bytes | 1.00 |\n",
		"each of 5 servers 7.00 µs",
		"| 1,000,000 | 10 | 50 | 10 | – |\n| 10,000,000 | 100 | 500 | 100 | – |\n",
		"a group serves 100,000 locks a second with its servers at 70 % of a core",
	} {
		require.Contains(t, out.String(), want)
	}
}

// TestBesideTheFirst: each driver's pairs are compared with the first's round by round. Its interval is narrow although
// rounds differ by half, and there is none of few rounds.
func TestBesideTheFirst(t *testing.T) {
	for rounds, want := range map[int]string{9: "0.80 (0.79–0.81)", 3: ""} {
		g := &result.Group{Cell: result.Cell{Scenario: "uncontended", Concurrency: 1, Nodes: 5}}
		for _, driver := range []string{"redlock", "peer", "dead"} {
			r := &result.Row{Driver: driver}
			for round := 1; round <= rounds; round++ {
				rate := float64(100 + 50*(round%2))
				switch driver {
				case "peer":
					rate *= 0.79 + 0.01*float64(round%3)
				case "dead":
					rate = 0
				}
				r.Rounds = append(r.Rounds, &result.Result{Round: round, Figures: result.Figures{PairsPerSec: rate}})
			}
			g.Rows = append(g.Rows, r)
		}
		var out bytes.Buffer
		Table(&out, g)
		require.Equal(t, want != "", strings.Contains(out.String(), "of the first's"))
		require.Contains(t, out.String(), want)
	}
}
