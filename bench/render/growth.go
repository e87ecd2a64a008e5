package render

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock/bench/result"
)

// growth says how the figures of each run grow with the one number in which its cells differ.
func growth(w io.Writer, runs []*result.Run) {
	var lines []string
	for _, run := range runs {
		for _, groups := range byScenario(run.Groups) {
			if axis := varied(groups); len(axis) == 1 {
				lines = append(lines, slopes(run, groups, axis[0])...)
			}
		}
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprint(w, "## How it grows\n\n"+
		"The slope is the exponent of the line through the measured points, on logarithmic axes: 1 is in proportion, 0 does\n"+
		"not grow, and 0.3 is twice as much for ten times. Where the points do not lie on a line, the tables above count.\n\n")
	fmt.Fprintf(w, "| what grows | driver | from | to | slope of pairs/s | of CPU per pair | of p50 | of bytes each |\n|---|---|---|---|---|---|---|---|\n%s\n\n", strings.Join(lines, "\n"))
}

// slopes are the lines of our drivers.
func slopes(run *result.Run, groups []*result.Group, axis dimension) (lines []string) {
	at := make([]float64, len(groups))
	for i, g := range groups {
		x, err := strconv.ParseFloat(axis.value(g.Cell), 64)
		if err != nil || x <= 0 {
			return nil // a word, such as a fault
		}
		at[i] = x
	}
	for i, row := range groups[0].Rows {
		if !ours(row) || i > 0 && row.Driver != "redlock-submit" {
			continue
		}
		line := fmt.Sprintf("| %s%s | %s | %s | %s |", axis.label, unless(run.Section == "", " (%s)", run.Section), row.Driver, axis.value(groups[0].Cell), axis.value(groups[len(groups)-1].Cell))
		for _, of := range []func(*result.Figures) float64{named("pairs").of, named("cpu").of, named("p50").of, func(f *result.Figures) float64 { return f.BytesEach }} {
			var x, y []float64
			for i, g := range groups {
				if v := of(&g.Row(row.Driver).Figures); v > 0 {
					x, y = append(x, at[i]), append(y, v)
				}
			}
			line += " " + slope(x, y) + " |"
		}
		lines = append(lines, line)
	}
	return lines
}

// slope is that of the line with the least squares through the logarithms.
func slope(xs, ys []float64) string {
	if len(xs) < 2 {
		return "–"
	}
	n := float64(len(xs))
	var sx, sy, sxx, sxy float64
	for i := range xs {
		x, y := math.Log(xs[i]), math.Log(ys[i])
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return fmt.Sprintf("%.2f", math.Round(100*(n*sxy-sx*sy)/(n*sxx-sx*sx))/100+0) // no -0.00
}

// The assumptions of scale.
const (
	scaleCallers = 512
	busyShare    = 0.7 // of a core that is planned with
	maxGroups    = 64  // of a client
)

// scale computes what many locks take from the measured CPU of a pair.
func scale(w io.Writer, runs []*result.Run) {
	cost := func(driver string) (f result.Figures, cell result.Cell) {
		for _, run := range runs {
			for _, g := range run.Groups {
				c := g.Cell
				usual := c.Scenario == "uncontended" && c.Concurrency == scaleCallers && c.RTT == 0 && c.KeyLen == usualKeyLen && c.Procs == 0 && c.Hold == 0
				if r := g.Row(driver); usual && r.Error == "" && r.ServerCPU > 0 && f.Pairs == 0 {
					f, cell = r.Figures, c
				}
			}
		}
		return f, cell
	}
	blocking, cell := cost("redlock")
	submit, _ := cost("redlock-submit")
	if blocking.Pairs == 0 {
		return
	}
	node := blocking.ServerCPU / float64(cell.Nodes)
	group := busyShare * 1e6 / node
	fmt.Fprintf(w, "## What 1, 10 and 100 million locks a second would take\n\n"+
		"Computed, not measured. A pair, at %d callers, cost the client %s µs of CPU (by `Submit` %s), and each of %d servers %s µs.\n\n"+
		"| locks a second | groups of %d masters | server processes, a core each | client cores, goroutines | client cores, `Submit` |\n|---|---|---|---|---|\n",
		scaleCallers, digits(blocking.CPUPerPair), digits(submit.CPUPerPair), cell.Nodes, digits(node), cell.Nodes)
	for _, rate := range []float64{1e6, 1e7, 1e8} {
		groups := math.Ceil(rate / group)
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", digits(rate), whole(groups), whole(groups*float64(cell.Nodes)),
			cores(rate, blocking.CPUPerPair), cores(rate, submit.CPUPerPair))
	}
	fmt.Fprintf(w, `
It assumes:

* keys are spread evenly over the groups, so that a group serves %s locks a second with its servers at %.0f %% of a core;
* batches of each group are as full as those of %d callers here: with fewer callers a lock costs more;
* the cores are as fast as those of this machine, where client and servers disturb each other;
* a network card costs no more than loopback, and carries it; round trips are short enough for the callers at hand;
* a client has %d groups at most, so more of them are several clients, each for a share of the keys;
* no caller waits for a lock: a key that many want is served by one holder after another.

`, digits(group), 100*busyShare, scaleCallers, maxGroups)
}

// moreCores computes what more client cores would bring, by Amdahl's law.
func moreCores(w io.Writer, runs []*result.Run) {
	var lines []string
	counts := []float64{4, 8, 16}
	for _, run := range runs {
		for _, g := range run.Groups {
			r := g.Row("redlock")
			part, each := r.FocusShare, r.CPUPerPair
			if run.Section != "lock" || part == 0 {
				continue
			}
			line := fmt.Sprintf("| %d callers | %s µs | %.0f %% |", g.Concurrency, digits(each), 100*part)
			for _, cores := range counts {
				line += fmt.Sprintf(" %.1f × = %s |", 1/(part+(1-part)/cores), digits(1e6/each/(part+(1-part)/cores)))
			}
			lines = append(lines, line+fmt.Sprintf(" %.0f |", math.Ceil(part*counts[len(counts)-1])))
		}
	}
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(w, `## What more client cores would bring

Computed from what was measured with this one, not measured. In a group one goroutine at a time sends and reads, under the
driver lock. By Amdahl's law that part bounds what 4, 8 and 16 client cores make of it: times as much, and locks a second.

| one group | CPU a lock | under the driver lock | 4 cores | 8 cores | 16 cores | groups that keep 16 busy |
|---|---|---|---|---|---|---|
%s

It assumes:

* the part was read off a CPU profile of one core; the kernel's work for the sends is in it;
* servers, network and interrupts are no limit, and cores are as fast together as one alone;
* a batch is as full as with these callers here: with more cores and as many callers, batches are smaller, and a lock dearer;
* no cache lines travel between cores, which costs more the more cores there are: so it is a bound from above;
* the part is each group's own, and keys are spread evenly, so n groups bring n times as much, up to the number of cores.

`, strings.Join(lines, "\n"))
}

// cores are those of clients for a rate.
func cores(rate, cost float64) string {
	if cost == 0 {
		return "–"
	}
	return whole(math.Ceil(rate * cost / 1e6 / busyShare))
}

// whole is digits of a count.
func whole(n float64) string {
	if n < 1000 {
		return fmt.Sprintf("%.0f", n)
	}
	return digits(n)
}
