package report

import (
	"bytes"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/redlock-go/redlock/bench/harness"
)

// The size of a plot, with its legend to the right of it.
const (
	width       = 9.2 * vg.Inch
	height      = 4.8 * vg.Inch
	legendWidth = 2.1 * vg.Inch
	resolution  = 130 // of the PNG, in dots per inch
)

// figure is a drawn plot.
type figure struct {
	Name    string // of its files
	Title   string
	Caption string
	svg     []byte
	png     []byte
}

// newPlot is a plot in the style of all.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text = title
	p.Title.TextStyle.Font.Size = 14
	p.Title.TextStyle.Font.Variant = "Sans"
	p.Title.Padding = 8
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: 11.5}
		axis.Tick.Label.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: 10.5}
		axis.Label.Padding = 5
		axis.Color, axis.Tick.Color = ink, ink
		axis.Label.TextStyle.Color, axis.Tick.Label.Color = ink, ink
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	p.Add(grid)
	return p
}

// newLegend is a legend in the style of all.
func newLegend() plot.Legend {
	l := plot.NewLegend()
	l.TextStyle.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: 10.5}
	l.TextStyle.Color = ink
	l.ThumbnailWidth = 26
	l.Padding = 3.5
	l.Left, l.Top = true, true
	return l
}

// render draws panels below each other, and the legend beside them.
func render(name, title, caption string, legend plot.Legend, panels ...*plot.Plot) (figure, error) {
	f := figure{Name: name, Title: title, Caption: caption}
	tall := height
	if len(panels) > 1 {
		tall *= vg.Length(len(panels)) * 0.75
	}
	paint := func(c vg.CanvasSizer) {
		all := draw.New(c)
		all.SetColor(color.White)
		all.Fill(all.Rectangle.Path())
		all = draw.Crop(all, 6, -6, 6, -6)
		left := draw.Crop(all, 0, -legendWidth, 0, 0)
		rows := make([][]*plot.Plot, len(panels))
		for i, p := range panels {
			rows[i] = []*plot.Plot{p}
		}
		tiles := draw.Tiles{Rows: len(panels), Cols: 1, PadY: 8}
		for i, row := range plot.Align(rows, tiles, left) {
			panels[i].Draw(row[0])
		}
		legend.Draw(draw.Crop(all, all.Max.X-all.Min.X-legendWidth+14, 0, 0, -34))
	}
	var svg, png bytes.Buffer
	vector := vgsvg.NewWith(vgsvg.UseWH(width, tall))
	paint(vector)
	if _, err := vector.WriteTo(&svg); err != nil {
		return f, err
	}
	raster := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(width, tall), vgimg.UseDPI(resolution))}
	paint(raster)
	if _, err := raster.WriteTo(&png); err != nil {
		return f, err
	}
	f.svg, f.png = svg.Bytes(), png.Bytes()
	return f, nil
}

// look is how points are drawn.
type look struct{ lines, dots bool }

// curve adds a driver's points to a plot, and returns what stands for them in a
// legend. Between two runs of points the line is broken.
func curve(p *plot.Plot, driver string, runs []plotter.XYs, as look) ([]plot.Thumbnailer, error) {
	var entry []plot.Thumbnailer
	s := styleOf(driver)
	for _, points := range runs {
		if len(points) == 0 {
			continue
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return nil, err
		}
		dots, err := plotter.NewScatter(points)
		if err != nil {
			return nil, err
		}
		line.LineStyle, dots.GlyphStyle = s.line(), s.glyph()
		entry = entry[:0]
		if as.lines {
			p.Add(line)
			entry = append(entry, line)
		}
		if as.dots {
			p.Add(dots)
			entry = append(entry, dots)
		}
	}
	return entry, nil
}

// curves adds the points of all drivers to a plot. Ours is first in the legend,
// as in the rows, and so drawn last, on top of the others.
func curves(p *plot.Plot, rows []harness.Row, as look, runs func(i int, row harness.Row) []plotter.XYs) (plot.Legend, error) {
	legend := newLegend()
	entries := make([][]plot.Thumbnailer, len(rows))
	for i := len(rows) - 1; i >= 0; i-- {
		var err error
		if entries[i], err = curve(p, rows[i].Driver, runs(i, rows[i]), as); err != nil {
			return legend, err
		}
	}
	for i, entry := range entries {
		if entry != nil {
			legend.Add(label(rows[i]), entry...)
		}
	}
	return legend, nil
}

// label marks a driver that promises less than the others.
func label(r harness.Row) string {
	if r.Weaker != "" {
		return r.Driver + " (" + r.Weaker + ")"
	}
	return r.Driver
}
