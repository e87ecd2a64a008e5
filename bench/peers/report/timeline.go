package report

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/redlock-go/redlock/bench/harness"
)

// timelines draws what happened while a node was away, one plot for each cell
// in which that was.
func timelines(run *harness.Run) ([]figure, error) {
	var all []figure
	for _, g := range run.Groups {
		if g.Cell.Fault != harness.Back {
			continue
		}
		f, err := timeline(g, run.Options.Timing.Window.Seconds())
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func timeline(g harness.Group, window float64) (figure, error) {
	cell := g.Cell
	cell.Fault = harness.NoFault
	where := describe(cell, dimension{})
	title := "A node dies and comes back, " + where
	upper := newPlot(title, "", "pairs per second")
	lower := newPlot("", "seconds; the node is away in the shaded part", "p99 of a pair")
	logAxis(&upper.Y, rate)
	logAxis(&lower.Y, micros)
	legend, err := curves(upper, g.Rows, look{lines: true}, slots(func(s harness.Slot) float64 { return s.PairsPerSec }))
	if err != nil {
		return figure{}, err
	}
	if _, err := curves(lower, g.Rows, look{lines: true}, slots(func(s harness.Slot) float64 { return s.P99 })); err != nil {
		return figure{}, err
	}
	for _, p := range []*plot.Plot{upper, lower} {
		fit(&p.Y)
		p.X.Min, p.X.Max = 0, window
		p.X.Tick.Marker = seconds(window)
		away, err := plotter.NewPolygon(plotter.XYs{
			{X: window / 3, Y: p.Y.Min}, {X: 2 * window / 3, Y: p.Y.Min},
			{X: 2 * window / 3, Y: p.Y.Max}, {X: window / 3, Y: p.Y.Max},
		})
		if err != nil {
			return figure{}, err
		}
		away.Color = shade
		away.LineStyle.Width = 0
		p.Add(away)
	}
	return render("timeline"+slug(where), title, "The server process is killed and started anew, empty, on the same port.", legend, upper, lower)
}

// slots are the runs of slices of a time line in which the figure is above
// zero. Where nothing came through is no point, and no line.
func slots(of func(harness.Slot) float64) func(int, harness.Row) []plotter.XYs {
	return func(_ int, row harness.Row) []plotter.XYs {
		runs := make([]plotter.XYs, 1)
		for _, s := range row.Result.Timeline {
			if v := of(s); v > 0 {
				last := &runs[len(runs)-1]
				*last = append(*last, plotter.XY{X: s.At, Y: v})
			} else {
				runs = append(runs, nil)
			}
		}
		return runs
	}
}

// seconds are ticks at whole ones, not too many.
func seconds(window float64) plot.ConstantTicks {
	var ticks plot.ConstantTicks
	step := max(math.Ceil(window/10), 1)
	for at := 0.0; at <= window; at += step {
		ticks = append(ticks, plot.Tick{Value: at, Label: strconv.FormatFloat(at, 'f', -1, 64)})
	}
	return ticks
}
