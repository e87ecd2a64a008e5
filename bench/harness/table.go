package harness

import (
	"cmp"
	"fmt"
	"io"
	"strings"
)

// row is one line of a group: a result, or the reason why there is none.
type row struct {
	driver string
	result Result
	err    error
}

// yardstick is the driver to which the others' throughput is compared.
const yardstick = "floor"

// columns are those of the table: heading, width and how to fill it. The
// first, the driver, is aligned to the left.
var columns = []struct {
	heading string
	width   int
	cell    func(r Result, floor float64) string
}{
	{"driver", -20, func(r Result, _ float64) string { return r.Driver }},
	{"pairs/s", 9, func(r Result, _ float64) string { return fmt.Sprintf("%.0f", r.PairsPerSec) }},
	{"×floor", 7, func(r Result, floor float64) string {
		if floor == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", r.PairsPerSec/floor)
	}},
	{"p50 µs", 8, func(r Result, _ float64) string { return fmt.Sprintf("%.0f", r.P50) }},
	{"p99", 8, func(r Result, _ float64) string { return fmt.Sprintf("%.0f", r.P99) }},
	{"p99.9", 8, func(r Result, _ float64) string { return fmt.Sprintf("%.0f", r.P999) }},
	{"max", 8, func(r Result, _ float64) string { return fmt.Sprintf("%.0f", r.Max) }},
	{"CPU µs/pair", 12, func(r Result, _ float64) string {
		if r.CPUPerPair == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", r.CPUPerPair)
	}},
	{"allocs/pair", 12, func(r Result, _ float64) string { return fmt.Sprintf("%.2f", r.AllocsPerPair) }},
	{"B/pair", 9, func(r Result, _ float64) string { return fmt.Sprintf("%.1f", r.BytesPerPair) }},
	{"tries/pair", 11, func(r Result, _ float64) string { return fmt.Sprintf("%.2f", r.TriesPerPair) }},
	{"goroutines", 11, func(r Result, _ float64) string { return fmt.Sprint(r.Goroutines) }},
	{"errors", 7, func(r Result, _ float64) string { return fmt.Sprint(r.Errors) }},
}

// printGroup prints the rows of one scenario at one concurrency. The spread of
// the throughput is shown if there were several rounds.
func printGroup(w io.Writer, scenario Scenario, concurrency int, rows []row, spread bool) {
	fmt.Fprintf(w, "\n%s, concurrency %d\n", scenario, concurrency)
	var line strings.Builder
	for _, c := range columns {
		fmt.Fprintf(&line, "%*s", c.width, c.heading)
	}
	if spread {
		line.WriteString("  pairs/s min–max")
	}
	fmt.Fprintln(w, line.String())

	var floor float64
	for _, r := range rows {
		if r.driver == yardstick && r.err == nil {
			floor = r.result.PairsPerSec
		}
	}
	for _, r := range rows {
		if r.err != nil {
			fmt.Fprintf(w, "%-20s%v\n", r.driver, r.err)
			continue
		}
		line.Reset()
		for _, c := range columns {
			fmt.Fprintf(&line, "%*s", c.width, c.cell(r.result, floor))
		}
		if spread {
			fmt.Fprintf(&line, "  %.0f–%.0f", r.result.Low, r.result.High)
		}
		fmt.Fprintln(w, line.String())
		if r.result.Errors > 0 {
			fmt.Fprintf(w, "%-20sthe first error: %s\n", "", cmp.Or(r.result.FirstError, "unknown"))
		}
	}
}
