package harness

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// yardstick is the driver to which the others' throughput is compared.
const yardstick = "floor"

// nameWidth is that of the first column.
const nameWidth = 22

// column is one of the table: heading, width and how to fill it.
type column struct {
	heading string
	width   int // negative to align to the left
	cell    func(r Result, floor float64) string
}

// columns are those of every table.
var columns = []column{
	{"driver", -nameWidth, func(r Result, _ float64) string { return r.Driver }},
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

// faultColumns are those that tell whether something piles up while a node is
// unwell.
var faultColumns = []column{
	{"goroutines±", 13, func(r Result, _ float64) string { return fmt.Sprintf("%+d", r.GoroutineGrowth) }},
	{"fds", 7, func(r Result, _ float64) string { return fmt.Sprint(r.Descriptors) }},
	{"fds±", 7, func(r Result, _ float64) string { return fmt.Sprintf("%+d", r.DescriptorGrowth) }},
	{"MiB", 8, func(r Result, _ float64) string { return fmt.Sprintf("%.1f", r.MemoryMiB) }},
	{"MiB±", 8, func(r Result, _ float64) string { return fmt.Sprintf("%+.1f", r.MemoryGrowthMiB) }},
}

// printGroup prints the rows of one cell. The spread of the throughput is shown
// if there were several rounds.
func printGroup(w io.Writer, title string, rows []Row, spread, fault bool) {
	fmt.Fprintf(w, "\n%s\n", title)
	shown := columns
	if fault {
		shown = append(slices.Clone(columns), faultColumns...)
	}
	var line strings.Builder
	for _, c := range shown {
		fmt.Fprintf(&line, "%*s", c.width, c.heading)
	}
	if spread {
		line.WriteString("  pairs/s min–max")
	}
	fmt.Fprintln(w, line.String())

	var floor float64
	for _, r := range rows {
		if r.Driver == yardstick && r.Err == nil {
			floor = r.Result.PairsPerSec
		}
	}
	for _, r := range rows {
		if r.Err != nil {
			fmt.Fprintf(w, "%*s%s\n", -nameWidth, r.name(), oneLine(r.Err.Error()))
			continue
		}
		line.Reset()
		r.Result.Driver = r.name()
		for _, c := range shown {
			fmt.Fprintf(&line, "%*s", c.width, c.cell(r.Result, floor))
		}
		if spread {
			fmt.Fprintf(&line, "  %.0f–%.0f", r.Result.Low, r.Result.High)
		}
		fmt.Fprintln(w, line.String())
		if r.Result.Errors > 0 {
			fmt.Fprintf(w, "%*sthe first error: %s\n", -nameWidth, "", oneLine(cmp.Or(r.Result.FirstError, "unknown")))
		}
	}
}

// name marks a driver that promises less than the others.
func (r Row) name() string {
	if r.Weaker != "" {
		return r.Driver + " *"
	}
	return r.Driver
}

// oneLine keeps an error that a library has written over several lines, one
// for each node, from tearing the table apart.
func oneLine(text string) string {
	const enough = 160
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > enough {
		text = string(runes[:enough]) + "…"
	}
	return text
}
