// Package render shows results: as tables of text, as a summary in Markdown, and
// as a page with plots. It measures nothing and knows no driver, but for what
// colour some have.
package render

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/bench/result"
)

// yardstick is the driver to which the others' throughput is compared.
const yardstick = "floor"

// measure is a figure of a row, or what is made of several.
type measure struct {
	name    string // in [result.Head.Shows]
	short   string // heads a column
	heading string // heads a table
	of      func(*result.Figures) float64
	text    func(g *result.Group, r *result.Row) string // in place of of
	ranged  bool                                        // a summary tells its lowest and highest round
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

// measures are all there are, in the order of the columns.
var measures = []measure{
	{"pairs", "pairs/s", "Pairs per second", func(f *result.Figures) float64 { return f.PairsPerSec }, nil, true},
	{"floor", "×floor", "Throughput as a part of the floor's", nil, func(g *result.Group, r *result.Row) string {
		floor := g.Row(yardstick + label(r.Driver))
		if floor.Error != "" || floor.PairsPerSec == 0 {
			return "–"
		}
		return fmt.Sprintf("%.2f", r.PairsPerSec/floor.PairsPerSec)
	}, false},
	{"p50", "p50 µs", "p50 of a pair, µs", func(f *result.Figures) float64 { return f.P50 }, nil, true},
	{"p99", "p99", "p99 of a pair, µs", func(f *result.Figures) float64 { return f.P99 }, nil, true},
	{"p999", "p99.9", "p99.9 of a pair, µs", func(f *result.Figures) float64 { return f.P999 }, nil, false},
	{"max", "max", "Longest pair, µs", func(f *result.Figures) float64 { return f.Max }, nil, false},
	{"acquire", "acquire p50, p99", "p50 and p99 of an acquire, µs", nil, func(_ *result.Group, r *result.Row) string { return halves(r.AcquireP50, r.AcquireP99) }, false},
	{"release", "release p50, p99", "p50 and p99 of a release, µs", nil, func(_ *result.Group, r *result.Row) string { return halves(r.ReleaseP50, r.ReleaseP99) }, false},
	{"ping", "acquire/PING", "p50 of an acquire over that of a PING", nil, func(_ *result.Group, r *result.Row) string {
		if r.AcquireP50 == 0 || r.PingP50 == 0 {
			return "–"
		}
		return fmt.Sprintf("%.2f", r.AcquireP50/r.PingP50)
	}, false},
	{"cpu", "CPU µs/pair", "Client CPU, µs per pair", func(f *result.Figures) float64 { return f.CPUPerPair }, nil, true},
	{"allocs", "allocs/pair", "Allocations per pair", nil, func(_ *result.Group, r *result.Row) string { return fmt.Sprintf("%.2f", r.AllocsPerPair) }, false},
	{"bytes", "B/pair", "Bytes allocated per pair", nil, func(_ *result.Group, r *result.Row) string { return fmt.Sprintf("%.0f", r.BytesPerPair) }, false},
	{"goroutines", "goroutines", "Goroutines at the end, and how many more than before the fault", nil, func(_ *result.Group, r *result.Row) string {
		return grown(r, "%.0f", r.Goroutines, "%+.0f", r.GoroutineGrowth)
	}, false},
	{"descriptors", "descriptors", "Descriptors at the end, and how many more", nil, func(_ *result.Group, r *result.Row) string {
		return grown(r, "%.0f", r.Descriptors, "%+.0f", r.DescriptorGrowth)
	}, false},
	{"heap", "heap MiB", "MiB of heap and stacks at the end, and how many more", nil, func(_ *result.Group, r *result.Row) string {
		return grown(r, "%.1f", r.MemoryMiB, "%+.2f", r.MemoryGrowthMiB)
	}, false},
	{"rss", "RSS MiB", "MiB of the process at the end, and how many more", nil, func(_ *result.Group, r *result.Row) string {
		return grown(r, "%.1f", r.RSSMiB, "%+.2f", r.RSSGrowthMiB)
	}, false},
	{"seconds", "seconds", "Seconds until all had their turn", func(f *result.Figures) float64 { return f.Seconds }, nil, true},
	{"ideal", "ideal", "Grants × hold over time", func(f *result.Figures) float64 { return f.IdealShare }, nil, true},
	{"fair", "max/fair", "The longest wait over the fair one", func(f *result.Figures) float64 { return f.MaxOfFair }, nil, true},
	{"goroutine", "of a goroutine's share", "Least and most of a goroutine's fair share, and the share", nil, func(_ *result.Group, r *result.Row) string {
		return fmt.Sprintf("%.2f–%.2f of %s", r.WorkerLeast, r.WorkerMost, digits(r.WorkerMean))
	}, false},
	{"process", "of a process's", "Least and most of a process's fair share", nil, func(_ *result.Group, r *result.Row) string {
		return fmt.Sprintf("%.2f–%.2f", r.ProcessLeast, r.ProcessMost)
	}, false},
	{"handoff", "hand-off p50, p99, max", "Release to next grant, p50, p99 and longest, µs", nil, func(_ *result.Group, r *result.Row) string {
		return halves(r.HandoffP50, r.HandoffP99) + ", " + digits(r.HandoffMax)
	}, false},
	{"cross", "between processes", "Release to a grant in another process, p50 and p99, µs, and how many are", nil, func(_ *result.Group, r *result.Row) string {
		return fmt.Sprintf("%s (%.0f %%)", halves(r.CrossP50, r.CrossP99), 100*r.CrossShare)
	}, false},
	{"commands", "commands", "Commands per grant on all nodes together", func(f *result.Figures) float64 { return f.CommandsPerPair }, nil, true},
	{"orphan", "TTL to grant p50, max", "End of a dead holder's TTL to the next grant, µs", nil, func(_ *result.Group, r *result.Row) string {
		return fmt.Sprintf("%s (%.0f kills)", halves(r.OrphanP50, r.OrphanMax), r.Kills)
	}, false},
	{"before", "", "Pairs per second before", nil, func(_ *result.Group, r *result.Row) string { return third(r, 0) }, false},
	{"away", "", "while it is away", nil, func(_ *result.Group, r *result.Row) string { return third(r, 1) }, false},
	{"after", "", "once it is back", nil, func(_ *result.Group, r *result.Row) string { return third(r, 2) }, false},
	{"lowest", "", "in the worst 60th of the window", nil, func(_ *result.Group, r *result.Row) string {
		if len(r.Timeline) == 0 {
			return "–"
		}
		worst := slices.MinFunc(r.Timeline, func(a, b result.Slot) int { return int(a.PairsPerSec - b.PairsPerSec) })
		return digits(worst.PairsPerSec)
	}, false},
	{"errors", "errors", "Errors", nil, func(_ *result.Group, r *result.Row) string { return fmt.Sprintf("%.0f", r.Errors) }, false},
}

// Which measures say nothing of contended cells, and which of no others.
var (
	notContended  = []string{"floor", "acquire", "release", "ping", "allocs", "bytes", "goroutines", "descriptors", "heap", "rss"}
	onlyContended = []string{"seconds", "ideal", "fair", "goroutine", "process", "handoff", "cross", "commands", "orphan"}
)

// says tells whether a measure says something of the cell of a group.
func (m measure) says(g *result.Group) bool {
	if g.Processes == 0 {
		return !slices.Contains(onlyContended, m.name) && (m.name != "ping" || g.RTT > 0)
	}
	switch m.name {
	case "seconds":
		return g.Once
	case "ideal":
		return g.Hold > 0
	case "orphan":
		return g.Fault.OfClients()
	}
	return !slices.Contains(notContended, m.name)
}

// named is the measure of a name.
func named(name string) measure {
	return measures[slices.IndexFunc(measures, func(m measure) bool { return m.name == name })]
}

// Named tells whether there is a measure of a name.
func Named(name string) bool {
	return slices.ContainsFunc(measures, func(m measure) bool { return m.name == name })
}

// label is the text in parentheses behind the name of a driver whose results
// are from one file of several.
func label(driver string) string {
	if i := strings.Index(driver, " ("); i >= 0 {
		return driver[i:]
	}
	return ""
}

// halves are the percentiles of a half, if the driver has it.
func halves(p50, p99 float64) string {
	if p50 == 0 {
		return "–"
	}
	return digits(p50) + ", " + digits(p99)
}

// grown is a figure and, of a cell with a fault, how much more it has become.
func grown(r *result.Row, format string, now float64, more string, growth float64) string {
	text := fmt.Sprintf(format, now)
	if r.Descriptors > 0 {
		text += fmt.Sprintf(" ("+more+")", growth)
	}
	return text
}

// third is the throughput in a third of a time line.
func third(r *result.Row, nth int) string {
	n := len(r.Timeline) / 3
	if n == 0 {
		return "–"
	}
	var sum float64
	for _, s := range r.Timeline[nth*n : (nth+1)*n] {
		sum += s.PairsPerSec
	}
	return digits(sum / float64(n))
}

// digits is a figure with three digits that count, and spaces between the
// thousands.
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
		text = text[:i] + " " + text[i:]
	}
	return text
}
