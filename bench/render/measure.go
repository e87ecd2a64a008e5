// Package render shows results: as tables of text, and as a summary in Markdown. It selects what a picture of
// each run shows, and measures nothing.
package render

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/bench/result"
)

// yardstick is the driver to which the throughput of the others is compared.
const yardstick = "floor"

// Yardstick explains it, for the reader of a first table.
const Yardstick = "no lock client but the yardstick: one thread sends the same commands for all locks in one batch, and does nothing else"

// measure is a figure of a row, or a text that is made of several.
type measure struct {
	name    string // in [result.Head.Shows]
	short   string // heads a column of a terminal; empty: only the summary has it
	heading string // heads a table
	of      func(*result.Figures) float64
	text    func(g *result.Group, r *result.Row) string // in place of of
	ranged  bool                                        // shown with its lowest and highest round
	also    func(*result.Row) string                    // the summary has it below the figure; or nil
	when    func(result.Cell) bool                      // cells that have it; nil: all
}

func alone(c result.Cell) bool     { return c.Processes == 0 }
func contended(c result.Cell) bool { return c.Processes > 0 }
func nodeFault(c result.Cell) bool {
	return alone(c) && c.Fault != result.NoFault && !c.Fault.OfClients()
}

// measures are all measures, in the order of the columns.
var measures = []measure{
	{name: "pairs", short: "pairs/s", heading: "Pairs per second", of: func(f *result.Figures) float64 { return f.PairsPerSec }, ranged: true},
	{name: "first", short: "of the first's", heading: "Pairs per second, of the first driver's, with the interval of its rounds", text: ofFirst},
	{name: "floor", short: "×floor", heading: "Throughput as a part of the floor's", text: ofFloor, when: alone},
	{name: "p50", short: "p50 µs", heading: "p50 of a pair, µs", of: func(f *result.Figures) float64 { return f.P50 }, ranged: true},
	{name: "p99", short: "p99", heading: "p99 of a pair, µs", of: func(f *result.Figures) float64 { return f.P99 }, ranged: true},
	{name: "pair", heading: "p50 and p99 of a pair, µs", text: func(_ *result.Group, r *result.Row) string { return two(r.P50, r.P99) }},
	{name: "p999", short: "p99.9", heading: "p99.9 of a pair, µs", of: func(f *result.Figures) float64 { return f.P999 }},
	{name: "max", short: "max", heading: "Longest pair, µs", of: func(f *result.Figures) float64 { return f.Max }},
	{name: "acquire", short: "acquire p50, p99", heading: "p50 and p99 of an acquire, µs", when: alone,
		text: func(_ *result.Group, r *result.Row) string { return two(r.AcquireP50, r.AcquireP99) }},
	{name: "release", short: "release p50, p99", heading: "p50 and p99 of a release, µs", when: alone,
		text: func(_ *result.Group, r *result.Row) string { return two(r.ReleaseP50, r.ReleaseP99) }},
	{name: "added", heading: "p50 of an acquire above that of a PING, µs", of: func(f *result.Figures) float64 { return f.Added }, ranged: true, when: alone},
	{name: "ping", short: "acquire/PING", heading: "p50 of an acquire as a multiple of a PING's", text: ofPing,
		when: func(c result.Cell) bool { return alone(c) && c.RTT > 0 }},
	{name: "cpu", short: "CPU µs/pair", heading: "Client CPU, µs per pair", of: func(f *result.Figures) float64 { return f.CPUPerPair }, ranged: true},
	{name: "core", heading: "Client CPU, µs per pair, and locks a second for which a core of it is enough", of: func(f *result.Figures) float64 { return f.CPUPerPair }, ranged: true,
		also: func(r *result.Row) string { return rateOf(r.CPUPerPair) }},
	{name: "servers", short: "servers' CPU", heading: "CPU of all servers, µs per pair", of: func(f *result.Figures) float64 { return f.ServerCPU }, ranged: true,
		when: func(c result.Cell) bool { return alone(c) && c.Fault == result.NoFault }},
	{name: "allocs", short: "allocs/pair", heading: "Allocations per pair", when: alone,
		text: func(_ *result.Group, r *result.Row) string { return fmt.Sprintf("%.2f", r.AllocsPerPair) }},
	{name: "goroutines", short: "goroutines", heading: "Goroutines at the end, and growth since before the fault", when: nodeFault,
		text: func(_ *result.Group, r *result.Row) string {
			return fmt.Sprintf("%.0f (%+.0f)", r.Goroutines, r.GoroutineGrowth)
		}},
	{name: "descriptors", short: "descriptors", heading: "Descriptors at the end, and growth since before the fault", when: nodeFault,
		text: func(_ *result.Group, r *result.Row) string {
			return fmt.Sprintf("%.0f (%+.0f)", r.Descriptors, r.DescriptorGrowth)
		}},
	{name: "heap", short: "heap MiB", heading: "MiB of heap and stacks at the end, and growth since before the fault", when: nodeFault,
		text: func(_ *result.Group, r *result.Row) string {
			return fmt.Sprintf("%.1f (%+.2f)", r.MemoryMiB, r.MemoryGrowthMiB)
		}},
	{name: "seconds", short: "seconds", heading: "Seconds until all had their turn", of: func(f *result.Figures) float64 { return f.Seconds }, ranged: true,
		when: func(c result.Cell) bool { return c.Once }},
	{name: "ideal", short: "ideal", heading: "Grants × hold / time", of: func(f *result.Figures) float64 { return f.IdealShare }, ranged: true,
		when: func(c result.Cell) bool { return contended(c) && c.Hold > 0 }},
	{name: "fair", short: "max/fair", heading: "The longest wait as a multiple of the fair one", of: func(f *result.Figures) float64 { return f.MaxOfFair }, ranged: true, when: contended},
	{name: "goroutine", short: "of a goroutine's share", heading: "Least and most of a goroutine's fair share, and the share", when: contended,
		text: func(_ *result.Group, r *result.Row) string {
			return fmt.Sprintf("%.2f–%.2f of %s", r.WorkerLeast, r.WorkerMost, digits(r.WorkerMean))
		}},
	{name: "process", short: "of a process's", heading: "Least and most of a process's fair share",
		text: func(_ *result.Group, r *result.Row) string {
			return fmt.Sprintf("%.2f–%.2f", r.ProcessLeast, r.ProcessMost)
		}, when: func(c result.Cell) bool { return c.Processes > 1 }},
	{name: "handoff", short: "hand-off p50, p99, max", heading: "Release to next grant, p50, p99 and longest, µs", when: contended,
		text: func(_ *result.Group, r *result.Row) string {
			return two(r.HandoffP50, r.HandoffP99) + ", " + digits(r.HandoffMax)
		}},
	{name: "cross", short: "between processes", heading: "Release to a grant in another process, p50 and p99, µs, and their share",
		text: func(_ *result.Group, r *result.Row) string {
			return fmt.Sprintf("%s (%.0f %%)", two(r.CrossP50, r.CrossP99), 100*r.CrossShare)
		}, when: func(c result.Cell) bool { return c.Processes > 1 }},
	{name: "trips", short: "round trips", heading: "Release to a grant in another process, p50 as a multiple of a PING's",
		text: func(_ *result.Group, r *result.Row) string { return ratio(r.CrossP50, r.PingP50) },
		when: func(c result.Cell) bool { return c.Processes > 1 }},
	{name: "commands", short: "commands", heading: "Commands that all nodes together execute for a grant, those in scripts included", of: func(f *result.Figures) float64 { return f.CommandsPerPair }, ranged: true, when: contended},
	{name: "orphan", short: "TTL to grant p50, max", heading: "End of a dead holder's TTL to the next grant, µs",
		text: func(_ *result.Group, r *result.Row) string {
			return fmt.Sprintf("%s (%.0f kills)", two(r.OrphanP50, r.OrphanMax), r.Kills)
		}, when: func(c result.Cell) bool { return c.Fault.OfClients() }},
	{name: "errors", short: "errors", heading: "Errors", text: func(_ *result.Group, r *result.Row) string { return fmt.Sprintf("%.0f", r.Errors) }},
}

// has reports whether a group has the measure.
func (m measure) has(g *result.Group) bool {
	if m.name == "floor" && !slices.ContainsFunc(g.Rows, func(r *result.Row) bool { return strings.HasPrefix(r.Driver, yardstick) }) {
		return false
	}
	if m.name == "first" && (len(g.Rows) < 2 || len(g.Rows[0].Rounds) < leastRounds) {
		return false
	}
	return m.when == nil || m.when(g.Cell)
}

// show is the measure of a row, or a dash where there is none.
func (m measure) show(g *result.Group, r *result.Row) string {
	switch {
	case r.Error != "":
		return "–"
	case m.text != nil:
		return m.text(g, r)
	}
	return digits(m.of(&r.Figures))
}

// span is its lowest and its highest round.
func (m measure) span(r *result.Row) string {
	if r.Error != "" {
		return "–"
	}
	return digits(m.of(&r.Low)) + "–" + digits(m.of(&r.High))
}

// named is the measure of a name.
func named(name string) measure {
	return measures[slices.IndexFunc(measures, func(m measure) bool { return m.name == name })]
}

func ofFloor(g *result.Group, r *result.Row) string {
	floor := g.Row(yardstick + label(r.Driver))
	if floor.Error != "" {
		return "–"
	}
	return ratio(r.PairsPerSec, floor.PairsPerSec)
}

// leastRounds is how many rounds there are for an interval at least.
const leastRounds = 7

// ofFirst is the pairs/s of a row as a part of the first's, round by round.
func ofFirst(g *result.Group, r *result.Row) string {
	ratios := r.Beside(g.Rows[0], func(f *result.Figures) float64 { return f.PairsPerSec })
	if r == g.Rows[0] || len(ratios) < leastRounds {
		return "–"
	}
	i := result.IntervalOf(ratios, result.ScoreOf(len(g.Rows)-1))
	return fmt.Sprintf("%.2f (%.2f–%.2f)", i.Mid, i.Low, i.High)
}

func ofPing(_ *result.Group, r *result.Row) string { return ratio(r.AcquireP50, r.PingP50) }

// rateOf is how many a second there are where each takes so many microseconds.
func rateOf(micros float64) string {
	if micros == 0 {
		return "–"
	}
	return digits(1e6 / micros)
}

// limit is the most pairs a second that the servers' processors allow in a cell: with each of them at work all the
// time, at what a pair costs them with the driver that asks least of them. It is 0 where they share processors.
func limit(run *result.Run, g *result.Group) float64 {
	least := math.Inf(1)
	for _, r := range g.Rows {
		if r.Error == "" && r.Weaker == "" && r.ServerCPU > 0 {
			least = min(least, r.ServerCPU)
		}
	}
	return 1e6 * float64(run.Own) / least
}

// ratio is a figure as a multiple of another.
func ratio(a, b float64) string {
	if a == 0 || b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.2f", a/b)
}

// label is the text in parentheses after the name of a driver, if its results are from one
// file of several.
func label(driver string) string {
	if i := strings.Index(driver, " ("); i >= 0 {
		return driver[i:]
	}
	return ""
}

// two are two percentiles, if there are any.
func two(p50, p99 float64) string {
	if p50 == 0 {
		return "–"
	}
	return digits(p50) + ", " + digits(p99)
}

// digits is a figure with three significant digits, and commas between the thousands.
func digits(x float64) string {
	if x == 0 {
		return "0"
	}
	power := 2 - int(math.Floor(math.Log10(math.Abs(x))))
	if power >= 0 {
		return strconv.FormatFloat(x, 'f', min(power, 3), 64)
	}
	unit := math.Pow(10, float64(-power))
	text := strconv.FormatFloat(math.Round(x/unit)*unit, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
