package report

import (
	"fmt"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/redlock-go/redlock/bench/harness"
)

// dimension is something that a run may let vary.
type dimension struct {
	name, label string
	of          func(harness.Cell) string
	drop        func(*harness.Cell) // so that cells which differ in nothing else are equal
	apart       bool                // its values have no order, so no line joins them
	measures    []measure
}

// measure is a figure of a result.
type measure struct {
	name, title, label string
	unit               func(float64) string
	of                 func(harness.Result) float64
}

var (
	throughput = measure{"throughput", "Throughput", "pairs per second", rate, func(r harness.Result) float64 { return r.PairsPerSec }}
	cpu        = measure{"cpu", "Client CPU per pair", "client CPU per pair", micros, func(r harness.Result) float64 { return r.CPUPerPair }}
	p50        = measure{"p50", "Median latency", "p50 of a pair", micros, func(r harness.Result) float64 { return r.P50 }}
	p99        = measure{"p99", "99th percentile of latency", "p99 of a pair", micros, func(r harness.Result) float64 { return r.P99 }}
)

var dimensions = []dimension{
	{"concurrency", "goroutines", func(c harness.Cell) string { return fmt.Sprint(c.Concurrency) },
		func(c *harness.Cell) { c.Concurrency = 0 }, false, []measure{throughput, cpu, p99}},
	{"nodes", "nodes", func(c harness.Cell) string { return fmt.Sprint(c.Nodes) },
		func(c *harness.Cell) { c.Nodes = 0 }, false, []measure{throughput, p50}},
	{"rtt", "round trip added", func(c harness.Cell) string { return c.RTT.String() },
		func(c *harness.Cell) { c.RTT = 0 }, false, []measure{throughput, p50}},
	{"fault", "first node", func(c harness.Cell) string { return string(c.Fault) },
		func(c *harness.Cell) { c.Fault = "" }, true, []measure{throughput, p99}},
	{"keylen", "bytes of a key", func(c harness.Cell) string { return fmt.Sprint(c.KeyLen) },
		func(c *harness.Cell) { c.KeyLen = 0 }, false, []measure{throughput, cpu}},
	{"procs", "GOMAXPROCS", func(c harness.Cell) string { return fmt.Sprint(c.Procs) },
		func(c *harness.Cell) { c.Procs = 0 }, false, []measure{throughput, cpu}},
}

// matrix draws every measure over every dimension that has more than one value,
// one plot for each combination of the others.
func matrix(run *harness.Run) ([]figure, error) {
	var all []figure
	for _, d := range dimensions {
		for _, cells := range d.series(run) {
			for _, m := range d.measures {
				f, err := over(d, m, cells)
				if err != nil {
					return nil, err
				}
				all = append(all, f)
			}
		}
	}
	return all, nil
}

// series are the groups that differ in nothing but the dimension, in the order
// of the run.
func (d dimension) series(run *harness.Run) [][]harness.Group {
	var (
		order []harness.Cell
		by    = map[harness.Cell][]harness.Group{}
	)
	for _, g := range run.Groups {
		rest := g.Cell
		d.drop(&rest)
		if by[rest] == nil {
			order = append(order, rest)
		}
		by[rest] = append(by[rest], g)
	}
	var all [][]harness.Group
	for _, rest := range order {
		if len(by[rest]) > 1 {
			all = append(all, by[rest])
		}
	}
	return all
}

// over draws one measure over one dimension. Its values are as far apart as
// each other, whatever they are: they are chosen, not found.
func over(d dimension, m measure, groups []harness.Group) (figure, error) {
	where := describe(groups[0].Cell, d)
	title := m.title + ", " + where
	p := newPlot(title, d.label, m.label)
	ticks := make([]plot.Tick, len(groups))
	for i, g := range groups {
		ticks[i] = plot.Tick{Value: float64(i), Label: d.of(g.Cell)}
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	logAxis(&p.Y, m.unit)
	legend, err := curves(p, groups[0].Rows, look{lines: !d.apart, dots: true}, func(nth int, row harness.Row) []plotter.XYs {
		var points plotter.XYs
		for i, g := range groups {
			r := rowOf(g, row.Driver)
			if v := m.of(r.Result); r.Err == nil && v > 0 {
				points = append(points, plotter.XY{X: float64(i) + d.aside(nth, len(groups[0].Rows)), Y: v})
			}
		}
		return []plotter.XYs{points}
	})
	if err != nil {
		return figure{}, err
	}
	side := 0.15 + d.aside(len(groups[0].Rows), len(groups[0].Rows))
	p.X.Min, p.X.Max = -side, float64(len(groups)-1)+side
	fit(&p.Y)
	return render(m.name+"-"+d.name+slug(where), title, "", legend, p)
}

// aside is how far the nth of so many drivers stands beside the value, so that
// points which no line leads to are told from each other.
func (d dimension) aside(nth, of int) float64 {
	if !d.apart {
		return 0
	}
	const spread = 0.6
	return spread * (float64(nth)/float64(of) - 0.5)
}

// rowOf is a driver's row of a group.
func rowOf(g harness.Group, driver string) harness.Row {
	for _, r := range g.Rows {
		if r.Driver == driver {
			return r
		}
	}
	return harness.Row{}
}

// describe names a cell by everything but one dimension.
func describe(c harness.Cell, but dimension) string {
	parts := []string{string(c.Scenario)}
	add := func(name, format string, args ...any) {
		if name != but.name {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add("concurrency", "%d goroutines", c.Concurrency)
	add("nodes", "%d nodes", c.Nodes)
	if c.RTT > 0 {
		add("rtt", "round trip +%v", c.RTT.Round(time.Microsecond))
	}
	if c.Fault != harness.NoFault {
		add("fault", "first node %s", c.Fault)
	}
	if c.KeyLen != 24 {
		add("keylen", "keys of %d bytes", c.KeyLen)
	}
	if c.Procs > 0 {
		add("procs", "GOMAXPROCS %d", c.Procs)
	}
	return strings.Join(parts, ", ")
}

// slug makes a description part of a file's name.
func slug(s string) string {
	return "-" + strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ReplaceAll(strings.ToLower(strings.ReplaceAll(s, "µ", "u")), ", ", "-")), "-")
}
