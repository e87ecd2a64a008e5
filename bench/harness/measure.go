package harness

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// measure is a figure of a driver's row, as a summary shows it.
type measure struct {
	heading string
	of      func(Result) float64
	text    func(g Group, r Result) string
	ping    func(Result) string // the same of a PING, if that is to be compared
}

// cell is the measure of a row, or a dash where there is none.
func (m measure) cell(g Group, r Row) string {
	if r.Err != nil {
		return "–"
	}
	return m.text(g, r.Result)
}

// measures are all there are, by name.
var measures = map[string]measure{
	"pairs": {"Pairs per second", func(r Result) float64 { return r.PairsPerSec }, func(_ Group, r Result) string {
		return digits(r.PairsPerSec) + spread(r, func(s Spread) Range { return s.PairsPerSec })
	}, nil},
	"floor": {"Throughput as a part of the floor's", nil, func(g Group, r Result) string {
		floor := rowOf(g, yardstick)
		if floor.Err != nil || floor.Result.PairsPerSec == 0 {
			return "–"
		}
		return fmt.Sprintf("%.2f", r.PairsPerSec/floor.Result.PairsPerSec)
	}, nil},
	"p50": {"p50 of a pair, µs", func(r Result) float64 { return r.P50 }, func(_ Group, r Result) string {
		return digits(r.P50) + spread(r, func(s Spread) Range { return s.P50 })
	}, nil},
	"p99": {"p99 of a pair, µs", func(r Result) float64 { return r.P99 }, func(_ Group, r Result) string {
		return digits(r.P99) + spread(r, func(s Spread) Range { return s.P99 })
	}, nil},
	"p999": {"p99.9 of a pair, µs", func(r Result) float64 { return r.P999 }, func(_ Group, r Result) string { return digits(r.P999) }, nil},
	"cpu": {"Client CPU, µs per pair", func(r Result) float64 { return r.CPUPerPair }, func(_ Group, r Result) string {
		return digits(r.CPUPerPair) + spread(r, func(s Spread) Range { return s.CPUPerPair })
	}, nil},
	"allocs":  {"Allocations per pair", nil, func(_ Group, r Result) string { return fmt.Sprintf("%.2f", r.AllocsPerPair) }, nil},
	"tries":   {"Attempts per pair", nil, func(_ Group, r Result) string { return fmt.Sprintf("%.2f", r.TriesPerPair) }, nil},
	"acquire": {"p50 and p99 of an acquire, µs", nil, func(_ Group, r Result) string { return halves(r, r.AcquireP50, r.AcquireP99) }, pingText},
	"release": {"p50 and p99 of a release, µs", nil, func(_ Group, r Result) string { return halves(r, r.ReleaseP50, r.ReleaseP99) }, pingText},
	"ping":    {"p50 of an acquire over that of a PING", nil, func(_ Group, r Result) string { return OverPing(r) }, nil},
	"goroutines": {"Goroutines at the end, and how many more than before the fault", nil, func(_ Group, r Result) string {
		return fmt.Sprintf("%d (%+d)", r.Goroutines, r.GoroutineGrowth)
	}, nil},
	"descriptors": {"Descriptors at the end, and how many more", nil, func(_ Group, r Result) string {
		return fmt.Sprintf("%d (%+d)", r.Descriptors, r.DescriptorGrowth)
	}, nil},
	"heap": {"MiB of heap and stacks at the end, and how many more", nil, func(_ Group, r Result) string {
		return fmt.Sprintf("%.1f (%+.2f)", r.MemoryMiB, r.MemoryGrowthMiB)
	}, nil},
	"rss": {"MiB of the process at the end, and how many more", nil, func(_ Group, r Result) string {
		return fmt.Sprintf("%.1f (%+.2f)", r.RSSMiB, r.RSSGrowthMiB)
	}, nil},
	"before": {"Pairs per second before", nil, func(_ Group, r Result) string { return third(r, 0) }, nil},
	"away":   {"while it is away", nil, func(_ Group, r Result) string { return third(r, 1) }, nil},
	"after":  {"once it is back", nil, func(_ Group, r Result) string { return third(r, 2) }, nil},
	"lowest": {"in the worst 60th of the window", nil, func(_ Group, r Result) string {
		if len(r.Timeline) == 0 {
			return "–"
		}
		worst := slices.MinFunc(r.Timeline, func(a, b Slot) int { return int(a.PairsPerSec - b.PairsPerSec) })
		return digits(worst.PairsPerSec)
	}, nil},
}

// pingText is a PING's p50 and p99.
func pingText(r Result) string { return digits(r.PingP50) + ", " + digits(r.PingP99) }

// halves are the percentiles of a half, if the driver has it.
func halves(r Result, p50, p99 float64) string {
	if r.AcquireP50 == 0 {
		return "–"
	}
	return digits(p50) + ", " + digits(p99)
}

// third is the throughput in a third of a time line.
func third(r Result, nth int) string {
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

// spread is a range over the rounds in parentheses, if there were several.
func spread(r Result, of func(Spread) Range) string {
	if r.Spread == nil {
		return ""
	}
	low, high := of(*r.Spread)[0], of(*r.Spread)[1]
	return " (" + digits(low) + "–" + digits(high) + ")"
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

// rowOf is a driver's row of a group, or an empty one.
func rowOf(g Group, driver string) Row {
	for _, r := range g.Rows {
		if r.Driver == driver {
			return r
		}
	}
	return Row{}
}

// writeLosses says where others are ahead of the first driver. Those that
// promise less do not count.
func writeLosses(w io.Writer, groups []Group) {
	if len(groups) == 0 {
		return
	}
	_, labels := axes(groups)
	ours := groups[0].Rows[0].Driver
	var lines []string
	for _, name := range []string{"pairs", "p50", "p99", "cpu"} {
		m := measures[name]
		var where []string
		for i, g := range groups {
			if ahead := ahead(g, m.of, name == "pairs"); len(ahead) > 0 {
				where = append(where, labels[i]+": "+strings.Join(ahead, ", "))
			}
		}
		if len(where) > 0 {
			lines = append(lines, fmt.Sprintf("* %s – %s", m.heading, strings.Join(where, "; ")))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(w, "Where %s is behind, its figure as a multiple of theirs:\n\n%s\n\n", ours, strings.Join(lines, "\n"))
	}
}

// ahead are the rows of a group that do better than its first, and the first's
// figure as a multiple of theirs.
func ahead(g Group, of func(Result) float64, more bool) []string {
	first := g.Rows[0]
	if first.Err != nil {
		return nil
	}
	var all []string
	for _, r := range g.Rows[1:] {
		if r.Err != nil || r.Weaker != "" || of(r.Result) == 0 {
			continue
		}
		ratio := of(first.Result) / of(r.Result)
		if more && ratio < 0.995 || !more && ratio > 1.005 {
			all = append(all, fmt.Sprintf("%s %.2f", r.Driver, ratio))
		}
	}
	return all
}
