package render

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/result"
)

// dimension is something that a run may let vary.
type dimension struct {
	name, label string
	of          func(result.Cell) string
	drop        func(*result.Cell) // so that cells which differ in nothing else are equal
	apart       bool               // its values have no order, so no line joins them
	shows       []string
}

var dimensions = []dimension{
	{"concurrency", "goroutines", func(c result.Cell) string { return strconv.Itoa(c.Concurrency) },
		func(c *result.Cell) { c.Concurrency = 0 }, false, []string{"pairs", "cpu", "p50", "p99"}},
	{"nodes", "nodes", func(c result.Cell) string { return strconv.Itoa(c.Nodes) },
		func(c *result.Cell) { c.Nodes = 0 }, false, []string{"pairs", "cpu"}},
	{"rtt", "round trip added", func(c result.Cell) string { return c.RTT.String() },
		func(c *result.Cell) { c.RTT, c.Jitter = 0, 0 }, false, []string{"pairs", "p50"}},
	{"fault", "node 1", func(c result.Cell) string {
		return cmp.Or(strings.TrimPrefix(string(c.Fault), string(result.NoFault)), "well")
	},
		func(c *result.Cell) { c.Fault, c.Jitter = "", 0 }, true, []string{"pairs", "p99"}},
	{"keylen", "bytes of a key", func(c result.Cell) string { return strconv.Itoa(c.KeyLen) },
		func(c *result.Cell) { c.KeyLen = 0 }, false, []string{"pairs", "cpu"}},
	{"procs", "GOMAXPROCS", func(c result.Cell) string { return strconv.Itoa(c.Procs) },
		func(c *result.Cell) { c.Procs = 0 }, false, []string{"pairs", "cpu"}},
	{"processes", "processes", func(c result.Cell) string { return strconv.Itoa(c.Processes) },
		func(c *result.Cell) { c.Processes = 0 }, false, []string{"pairs", "p99"}},
	{"keys", "keys", func(c result.Cell) string { return strconv.Itoa(c.Keys) },
		func(c *result.Cell) { c.Keys = 0 }, false, []string{"pairs", "p99"}},
	{"hold", "hold", func(c result.Cell) string { return c.Hold.String() },
		func(c *result.Cell) { c.Hold = 0 }, false, []string{"pairs", "p99"}},
}

// units are how the measures of a plot are written on its axis.
var units = map[string]func(float64) string{"pairs": rate, "cpu": micros, "p50": micros, "p99": micros}

// plots draws all that the run has the data for.
func plots(run *result.Run) []*plot {
	var all []*plot
	for _, d := range dimensions {
		for _, groups := range d.series(run.Groups) {
			for _, name := range d.shows {
				all = append(all, over(d, named(name), groups))
			}
		}
	}
	for _, g := range run.Groups {
		if g.Fault == result.Back {
			all = append(all, timeline(g, "Pairs per second", "pairs", rate, func(s result.Slot) float64 { return s.PairsPerSec }),
				timeline(g, "p99 of a pair", "p99", micros, func(s result.Slot) float64 { return s.P99 }))
		} else {
			all = append(all, distribution(g))
		}
	}
	return slices.DeleteFunc(all, func(p *plot) bool { return len(p.series) == 0 })
}

// series are the groups that differ in nothing but the dimension, in the order
// of the run.
func (d dimension) series(groups []*result.Group) [][]*result.Group {
	var order []result.Cell
	by := map[result.Cell][]*result.Group{}
	for _, g := range groups {
		rest := g.Cell
		d.drop(&rest)
		if by[rest] == nil {
			order = append(order, rest)
		}
		by[rest] = append(by[rest], g)
	}
	var all [][]*result.Group
	for _, rest := range order {
		if len(by[rest]) > 1 {
			all = append(all, by[rest])
		}
	}
	return all
}

// over draws one measure over one dimension. Its values are as far apart as
// each other: they are chosen, not found.
func over(d dimension, m measure, groups []*result.Group) *plot {
	where := describe(groups[0].Cell, d.name)
	if d.name == "rtt" {
		at := groups[0].Cell
		at.Jitter = 0
		where = describe(at, d.name)
	}
	p := &plot{title: strings.TrimSuffix(m.heading, ", µs"), under: where, x: d.label + " (evenly spaced)", unit: units[m.name]}
	p.Name = slug(m.name + " by " + d.name + " " + where)
	last := float64(len(groups) - 1)
	p.low, p.high = -0.08*last, 1.08*last
	if d.apart {
		p.low, p.high, p.x = -0.5, last+0.5, d.label
	}
	for i, g := range groups {
		p.ticks = append(p.ticks, tick{float64(i), d.of(g.Cell)})
	}
	rows := groups[0].Rows
	for nth, row := range rows {
		c := curve{driver: row, dots: true, lines: !d.apart}
		var points []point
		for i, g := range groups {
			at := float64(i)
			if d.apart {
				at += 0.7 * ((float64(nth)+0.5)/float64(len(rows)) - 0.5)
			}
			r := g.Row(row.Driver)
			if v := m.of(&r.Figures); r.Error == "" && v > 0 {
				points = append(points, point{at, v, m.of(&r.Low), m.of(&r.High)})
			}
		}
		p.add(c, points)
	}
	return p
}

// percentiles are the ticks of the axis of a distribution.
var percentiles = []struct {
	q     float64
	label string
}{{0.5, "50 %"}, {0.9, "90 %"}, {0.99, "99 %"}, {0.999, "99.9 %"}, {0.9999, "99.99 %"}}

// distribution draws the latency of all pairs of a cell.
func distribution(g *result.Group) *plot {
	p := &plot{title: "Latency of a pair", under: Title(g.Cell), x: "percentile (log scale of what is slower)", unit: micros, high: 4.2}
	p.Name = slug("latency " + p.under)
	for _, t := range percentiles {
		p.ticks = append(p.ticks, tick{-math.Log10(1 - t.q), t.label})
	}
	for _, row := range g.Rows {
		var points []point
		for i, v := range row.Tail {
			x, _ := result.Quantile(i)
			points = append(points, point{x, v, row.TailLow[i], row.TailHigh[i]})
		}
		p.add(curve{driver: row, lines: true}, points)
	}
	return p
}

// timeline draws what happened while a node was away. Where nothing came
// through there is no point, and no line.
func timeline(g *result.Group, title, name string, unit func(float64) string, of func(result.Slot) float64) *plot {
	cell := g.Cell
	cell.Fault = result.NoFault
	p := &plot{title: title + " while a node dies and comes back", under: Title(cell) + "; it is away in the shaded third", x: "seconds", unit: unit}
	p.Name = slug("timeline " + name + " " + Title(cell))
	for _, row := range g.Rows {
		n := len(row.Timeline)
		if n == 0 {
			continue
		}
		p.high = row.Timeline[n-1].At + row.Timeline[0].At
		c := curve{driver: row, lines: true}
		var points []point
		for i, s := range row.Timeline {
			if v := of(s); v > 0 {
				low, high := v, v
				for _, round := range row.Rounds {
					low, high = min(low, of(round.Timeline[i])), max(high, of(round.Timeline[i]))
				}
				points = append(points, point{s.At, v, low, high})
			} else {
				p.add(c, points)
				points = nil
			}
		}
		p.add(c, points)
	}
	p.shade = [2]float64{p.high / 3, 2 * p.high / 3}
	step := max(math.Ceil(p.high/10), 1)
	if p.high < 3 {
		step = 0.25
	}
	for at := 0.0; at <= p.high; at += step {
		p.ticks = append(p.ticks, tick{at, strconv.FormatFloat(at, 'f', -1, 64)})
	}
	return p
}

// rate is a number a second.
func rate(v float64) string {
	switch {
	case v >= 1e6:
		return fmt.Sprintf("%gM", v/1e6)
	case v >= 1e3:
		return fmt.Sprintf("%gk", v/1e3)
	}
	return fmt.Sprintf("%g", v)
}

// micros is a duration, given in microseconds.
func micros(v float64) string {
	if v < 1 {
		return fmt.Sprintf("%g µs", v)
	}
	return time.Duration(v * 1e3).String()
}

// slug makes a description a file's name.
func slug(s string) string {
	words := strings.FieldsFunc(strings.ReplaceAll(strings.ToLower(s), "µ", "u"), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	return strings.Join(words, "-")
}
