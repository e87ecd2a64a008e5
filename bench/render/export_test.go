package render

import (
	"bytes"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/result"
)

// TestExport: benchstat's form has a name, a count, and pairs of a value and a unit.
func TestExport(t *testing.T) {
	cell := result.Cell{Scenario: "uncontended", Concurrency: 64, Nodes: 5, RTT: time.Millisecond, KeyLen: 8}
	lines := []result.Line{
		{Head: &result.Head{Commit: "abc", Section: "throughput"}},
		{Result: &result.Result{Driver: "redlock", Cell: cell, Round: 1, Figures: result.Figures{Pairs: 120, PairsPerSec: 60.5, P50: 1.5}}},
		{Result: &result.Result{Driver: "other", Cell: cell, Round: 1, Error: "it hangs, \"always\""}},
	}
	var text bytes.Buffer
	require.NoError(t, Benchstat(&text, lines))
	require.Regexp(t, regexp.MustCompile(`(?m)^BenchmarkPair/scenario=uncontended/driver=redlock/n=5/c=64/rtt=1ms/keylen=8 120 60\.5 pairs/s 1500 p50-ns( [0-9.]+ [a-z0-9/-]+)+$`), text.String())
	require.NotContains(t, text.String(), "driver=other")
}

// TestDisturbed: rows that were measured beside other programs are marked, and named below the tables.
func TestDisturbed(t *testing.T) {
	cell := result.Cell{Scenario: "uncontended", Concurrency: 64, Nodes: 5, KeyLen: 8}
	lines := []result.Line{{Head: &result.Head{}}}
	for driver, others := range map[string]float64{"redlock": .4, "floor": .02} {
		lines = append(lines, result.Line{Result: &result.Result{Driver: driver, Cell: cell, Round: 1, Figures: result.Figures{Pairs: 1, PairsPerSec: 1, Others: others}}})
	}
	run := result.Collect(lines)[0]
	var text bytes.Buffer
	Table(&text, run.Groups[0])
	Notes(&text, run)
	require.Regexp(t, `(?m)^redlock ! `, text.String())
	require.NotContains(t, text.String(), "floor !")
	require.Contains(t, text.String(), "other programs used 40 % of the processors")
}

// TestUnfair: rows of a starved process are marked where they are shown.
func TestUnfair(t *testing.T) {
	cell := result.Cell{Scenario: "contended", Concurrency: 1, Processes: 2, Nodes: 5, KeyLen: 8}
	lines := []result.Line{{Head: &result.Head{}}}
	for driver, least := range map[string]float64{"redlock": .9, "other": .44} {
		lines = append(lines, result.Line{Result: &result.Result{Driver: driver, Cell: cell, Round: 1, Figures: result.Figures{
			Pairs: 1, PairsPerSec: 1, ProcessLeast: least, ProcessMost: 2 - least, CrossP50: 2300, PingP50: 1000}}})
	}
	runs := result.Collect(lines)
	var table, summary bytes.Buffer
	Table(&table, runs[0].Groups[0])
	Notes(&table, runs[0])
	summarize(&summary, runs)
	require.Regexp(t, `(?m)^other ~ .* 2\.30 `, table.String())
	require.Contains(t, table.String(), "2 processes: a process has had 0.44 of its fair share")
	require.Contains(t, summary.String(), "| other ~ |")
	require.NotContains(t, table.String()+summary.String(), "redlock ~")
}
