package main

import (
	"image/color"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/redlock-go/redlock/bench/render"
	"github.com/redlock-go/redlock/bench/result"
)

// panels are the measures that a chart shows: what a lock costs the client, what the client adds to its time, and
// how many there are a second, up to what the servers can do.
var panels = []struct {
	heading string
	of      func(*result.Figures) float64
}{
	{"Client CPU, µs per pair", func(f *result.Figures) float64 { return f.CPUPerPair }},
	{"p50 of an acquire less that of a PING, µs", func(f *result.Figures) float64 { return f.Added }},
	{"Pairs per second", func(f *result.Figures) float64 { return f.PairsPerSec }},
}

// drawChart draws the panels side by side, and beside them the names of the drivers.
func drawChart(c *render.Chart) []byte {
	s := newSheet(960, 400, c.About...)
	legend := newLegend()
	for i, r := range c.Drivers {
		name := r.Driver
		if r.Weaker != "" {
			name += " (" + r.Weaker + ")"
		}
		legend.Add(name, &plotter.Line{LineStyle: styleOf(r, i)})
	}
	limit := &plotter.Line{LineStyle: line(0x222222, 1.3, 1, 3)}
	for x, y := range c.Limits {
		if y > 0 {
			limit.XYs = append(limit.XYs, plotter.XY{X: float64(x), Y: y})
		}
	}
	if len(limit.XYs) > 0 {
		legend.Add("the servers' limit", limit)
	}
	var row []*plot.Plot
	for i, panel := range panels {
		p := newPlot(panel.heading)
		drawCurves(p, c, panel.of)
		if i == len(panels)-1 && len(limit.XYs) > 0 {
			p.Add(limit)
		}
		if p.Y.Max > 0 { // else nothing was measured
			p.X.Label.Text = c.Axis
			p.NominalX(c.Labels...)
			p.X.Min, p.X.Max = -0.15, float64(len(c.Labels))-0.85
			p.Y.Min, p.Y.Max, p.Y.Scale, p.Y.Tick.Marker = p.Y.Min/1.15, p.Y.Max*1.15, plot.LogScale{}, plot.TickerFunc(ticks)
			row = append(row, p)
		}
	}
	at := plot.Align([][]*plot.Plot{append(row, nil)}, draw.Tiles{Rows: 1, Cols: len(row) + 1, PadX: 16}, s.Canvas)[0]
	for i, p := range row {
		p.Draw(at[i])
	}
	legend.Draw(draw.Crop(at[len(row)], 0, 0, 0, -20))
	return s.bytes()
}

// drawCurves draws each driver: its rounds as a band, its medians on it.
func drawCurves(p *plot.Plot, c *render.Chart, of func(*result.Figures) float64) {
	for i, driver := range slices.Backward(c.Drivers) { // ours is first, and on top
		var medians, low, high plotter.XYs
		for x, g := range c.Groups {
			r := g.Row(driver.Driver)
			if y := of(&r.Figures); y > 0 {
				medians = append(medians, plotter.XY{X: float64(x), Y: y})
				low = append(low, plotter.XY{X: float64(x), Y: max(of(&r.Low), y/10)}) // 0 would need an axis without end
				high = append(high, plotter.XY{X: float64(x), Y: of(&r.High)})
			}
		}
		if len(medians) == 0 {
			continue
		}
		slices.Reverse(high)
		style := styleOf(driver, i)
		shade := style.Color.(color.NRGBA)
		shade.A = 0x1f
		p.Add(&plotter.Polygon{XYs: []plotter.XYs{append(low, high...)}, Color: shade},
			&plotter.Line{XYs: medians, LineStyle: style},
			&plotter.Scatter{XYs: medians, GlyphStyle: draw.GlyphStyle{Color: style.Color, Radius: 2.2, Shape: draw.CircleGlyph{}}})
	}
}

// styles are those of ours and of the yardsticks, which are in most pictures.
var styles = map[string]draw.LineStyle{
	"redlock":          line(0xd81159, 3),
	"floor":            line(0x444444, 1.5, 7, 4),
	"floor-goroutines": line(0x888888, 1.5, 7, 4),
	"floor-obliged":    line(0x888888, 1.5, 2, 2),
}

// colours are those of other drivers, and of the curves of the dashboard.
var colours = []uint32{0x1565c0, 0x2e7d32, 0xb26a00, 0x6a1b9a, 0x0f7f83, 0x8d6e63, 0x56a5ec, 0x8c0f4a, 0xe8749d}

// styleOf is the style of the i-th driver: who promises less than a lock on a majority is dotted.
func styleOf(r *result.Row, i int) draw.LineStyle {
	style, ok := styles[r.Driver]
	if !ok {
		style = line(colours[i%len(colours)], 1.5)
	}
	if r.Weaker != "" {
		style.Dashes = []vg.Length{2, 3}
	}
	return style
}

// ticks are round numbers on a logarithmic axis.
func ticks(low, high float64) (all []plot.Tick) {
	var ticker plot.Ticker = plot.DefaultTicks{}
	isLong := high > 8*low
	if isLong {
		ticker = plot.LogTicks{}
	}
	for _, tick := range ticker.Ticks(low, high) {
		digit := strconv.FormatFloat(tick.Value, 'e', 0, 64)[:1]
		if tick.IsMinor() == isLong && (!isLong || strings.Contains("125", digit)) { // powers of ten are there twice
			all = append(all, plot.Tick{Value: tick.Value, Label: strconv.FormatFloat(tick.Value, 'f', -1, 32)})
		}
	}
	return all
}
