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

// holdingColumns are those that tell whether something piles up while a node is
// unwell.
var holdingColumns = []column{
	{"goroutines±", 13, func(r Result, _ float64) string { return fmt.Sprintf("%+d", r.GoroutineGrowth) }},
	{"fds", 7, func(r Result, _ float64) string { return fmt.Sprint(r.Descriptors) }},
	{"fds±", 7, func(r Result, _ float64) string { return fmt.Sprintf("%+d", r.DescriptorGrowth) }},
	{"MiB", 8, func(r Result, _ float64) string { return fmt.Sprintf("%.1f", r.MemoryMiB) }},
	{"MiB±", 8, func(r Result, _ float64) string { return fmt.Sprintf("%+.2f", r.MemoryGrowthMiB) }},
	{"RSS", 8, func(r Result, _ float64) string { return fmt.Sprintf("%.1f", r.RSSMiB) }},
	{"RSS±", 8, func(r Result, _ float64) string { return fmt.Sprintf("%+.2f", r.RSSGrowthMiB) }},
}

// apartColumns are those of the two halves of a pair.
var apartColumns = []column{
	{"acq p50", 10, func(r Result, _ float64) string { return half(r, r.AcquireP50) }},
	{"acq p99", 10, func(r Result, _ float64) string { return half(r, r.AcquireP99) }},
	{"rel p50", 10, func(r Result, _ float64) string { return half(r, r.ReleaseP50) }},
	{"rel p99", 10, func(r Result, _ float64) string { return half(r, r.ReleaseP99) }},
	{"acq/ping", 10, func(r Result, _ float64) string { return OverPing(r) }},
}

// spreadColumns are those of a run with several rounds.
var spreadColumns = []column{
	{"pairs/s min–max", 18, func(r Result, _ float64) string { return r.Spread.PairsPerSec.String() }},
	{"p50 min–max", 16, func(r Result, _ float64) string { return r.Spread.P50.String() }},
	{"p99 min–max", 16, func(r Result, _ float64) string { return r.Spread.P99.String() }},
}

// half is a latency of a half, or a dash if the driver has none.
func half(r Result, us float64) string {
	if r.AcquireP50 == 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f", us)
}

// OverPing says how many round trips of the network a median acquire has taken.
func OverPing(r Result) string {
	if r.AcquireP50 == 0 || r.PingP50 == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", r.AcquireP50/r.PingP50)
}

// view says which columns a table has beyond the usual ones.
type view struct{ apart, holdings, spread bool }

// view is what the options want to be seen of a cell.
func (o Options) view(c Cell) view {
	return view{o.Apart || c.RTT > 0, len(o.Faults) > 0, o.Rounds > 1}
}

func (v view) columns() []column {
	shown := slices.Clone(columns)
	if v.apart {
		shown = append(shown, apartColumns...)
	}
	if v.holdings {
		shown = append(shown, holdingColumns...)
	}
	if v.spread {
		shown = append(shown, spreadColumns...)
	}
	return shown
}

// Pinged says how long a PING takes; nothing if nobody could be measured.
func (g Group) Pinged() string {
	for _, r := range g.Rows {
		if r.Err == nil {
			return fmt.Sprintf("a PING takes %.0f µs, p99 %.0f µs", r.Result.PingP50, r.Result.PingP99)
		}
	}
	return ""
}

// printGroup prints the rows of one cell.
func printGroup(w io.Writer, title string, g Group, v view) {
	rows := g.Rows
	if ping := g.Pinged(); v.apart && ping != "" {
		title += "; " + ping
	}
	fmt.Fprintf(w, "\n%s\n", title)
	shown := v.columns()
	var line strings.Builder
	for _, c := range shown {
		fmt.Fprintf(&line, "%*s", c.width, c.heading)
	}
	fmt.Fprintln(w, line.String())

	var floor float64
	if r := rowOf(g, yardstick); r.Err == nil {
		floor = r.Result.PairsPerSec
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
