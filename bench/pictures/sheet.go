package main

import (
	"bytes"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

func init() { plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"} }

// sheet is a picture that is being drawn. Its canvas is what is left below some lines of text.
type sheet struct {
	draw.Canvas
	svg *vgsvg.Canvas
}

func newSheet(width, height vg.Length, lines ...string) *sheet {
	svg := vgsvg.New(width, height)
	s := &sheet{draw.New(svg), svg}
	s.FillPolygon(color.White, []vg.Point{{}, {X: width}, {X: width, Y: height}, {Y: height}})
	s.Canvas = draw.Crop(s.Canvas, 10, -10, 8, -8)
	for i, line := range lines {
		style := newLegend().TextStyle
		if i == 0 {
			style.Font.Size = 13
		}
		s.FillText(style, vg.Point{X: s.Min.X, Y: s.Max.Y - 12}, line)
		s.Max.Y -= 17
	}
	s.Max.Y -= 8
	return s
}

// bytes ends the picture. The fonts that it adds have the widths of the one with which it was drawn.
func (s *sheet) bytes() []byte {
	var out bytes.Buffer
	_, _ = s.svg.WriteTo(&out)
	return bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif"))
}

// newPlot is an empty plot in the style of all.
func newPlot(title string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.Title.TextStyle.Font.Size, p.Title.Padding = title, 11, 6
	soft, pale := color.Gray{0x66}, color.Gray{0xdd}
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Color, axis.Tick.Color, axis.Tick.Label.Color, axis.Label.TextStyle.Color = soft, soft, soft, soft
		axis.Tick.Length, axis.Padding, axis.Tick.Label.Font.Size, axis.Label.TextStyle.Font.Size = 3, 0, 10, 10
	}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color, grid.Vertical.Width, grid.Horizontal.Width = pale, pale, 0.5, 0.5
	p.Add(grid)
	return p
}

// newLegend is a column of names, from the top.
func newLegend() plot.Legend {
	l := plot.NewLegend()
	l.Top, l.Left, l.Padding, l.ThumbnailWidth, l.TextStyle.Font.Size = true, true, 5, 24, 10
	return l
}

// line is a style of lines.
func line(rgb uint32, width vg.Length, dashes ...vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: color.NRGBA{uint8(rgb >> 16), uint8(rgb >> 8), uint8(rgb), 255}, Width: width, Dashes: dashes}
}
