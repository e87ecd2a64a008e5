package report

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/redlock-go/redlock/bench/harness"
)

// percentiles are the ticks of the axis of a distribution. It has as much room
// for 90 to 99 % as for 99 to 99.9 %: what matters is in the tail.
var percentiles = []struct {
	q     float64
	label string
}{{0, "0"}, {0.5, "50 %"}, {0.9, "90 %"}, {0.99, "99 %"}, {0.999, "99.9 %"}, {0.9999, "99.99 %"}}

// tail places a quantile on the axis.
func tail(q float64) float64 { return -math.Log10(1 - q) }

// distributions draws the latency of all pairs of a cell, one plot a cell. A
// cell of which a time line is drawn has none: what happened in it is no one
// distribution.
func distributions(run *harness.Run) ([]figure, error) {
	var all []figure
	for _, g := range run.Groups {
		if g.Cell.Fault == harness.Back {
			continue
		}
		f, err := distribution(g)
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

func distribution(g harness.Group) (figure, error) {
	where := describe(g.Cell, dimension{})
	title := "Latency of a pair, " + where
	p := newPlot(title, "percentile", "latency")
	var ticks []plot.Tick
	for _, t := range percentiles {
		ticks = append(ticks, plot.Tick{Value: tail(t.q), Label: t.label})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	logAxis(&p.Y, micros)
	legend, err := curves(p, g.Rows, look{lines: true}, func(_ int, row harness.Row) []plotter.XYs {
		return []plotter.XYs{quantiles(row.Result.Latency)}
	})
	if err != nil {
		return figure{}, err
	}
	p.X.Min, p.X.Max = 0, tail(percentiles[len(percentiles)-1].q)
	fit(&p.Y)
	return render("latency"+slug(where), title, "All pairs of all rounds. A line ends where fewer than ten pairs were slower.", legend, p)
}

// quantiles samples a histogram evenly along the axis, as far as its tail can
// be believed.
func quantiles(h *harness.Histogram) plotter.XYs {
	if h == nil {
		return nil
	}
	var points plotter.XYs
	const step, enough = 0.04, 10
	for x := step; x <= tail(percentiles[len(percentiles)-1].q)+step/2; x += step {
		q := 1 - math.Pow(10, -x)
		if float64(h.Count())*(1-q) < enough {
			break
		}
		if d := h.Quantile(q); d > 0 {
			points = append(points, plotter.XY{X: x, Y: float64(d.Nanoseconds()) / 1e3})
		}
	}
	return points
}
