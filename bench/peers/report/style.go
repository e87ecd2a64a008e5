package report

import (
	"image/color"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// style is how a driver looks on every plot: ours in a red that nobody else
// has, and bolder; the yardstick black and dashed; relatives in shades of one
// colour, and what promises less than a majority dotted.
type style struct {
	color  color.RGBA
	width  vg.Length
	dashes []vg.Length
	shape  draw.GlyphDrawer
}

var (
	solid  []vg.Length
	dashed = []vg.Length{7, 4}
	dotted = []vg.Length{2, 3}
)

// styles are those of the drivers that are known, by name.
var styles = map[string]style{
	"redlock":             {rgb(0xd8, 0x11, 0x59), 3.2, solid, draw.CircleGlyph{}},
	"redlock-portable":    {rgb(0xf0, 0x80, 0xa8), 2.2, solid, draw.CircleGlyph{}},
	"floor":               {rgb(0x22, 0x22, 0x22), 1.8, dashed, draw.PlusGlyph{}},
	"autopipeline":        {rgb(0x15, 0x65, 0xc0), 1.8, solid, draw.SquareGlyph{}},
	"autopipeline-quorum": {rgb(0x64, 0xb5, 0xf6), 1.8, solid, draw.SquareGlyph{}},
	"redsync-goredis":     {rgb(0x2e, 0x7d, 0x32), 1.5, solid, draw.TriangleGlyph{}},
	"redsync-goredis-ff":  {rgb(0x81, 0xc7, 0x84), 1.5, solid, draw.TriangleGlyph{}},
	"redsync-redigo":      {rgb(0xe6, 0x51, 0x00), 1.5, solid, draw.PyramidGlyph{}},
	"redsync-redigo-ff":   {rgb(0xff, 0xb7, 0x4d), 1.5, solid, draw.PyramidGlyph{}},
	"redsync-rueidis":     {rgb(0x6a, 0x1b, 0x9a), 1.5, solid, draw.BoxGlyph{}},
	"redsync-rueidis-ff":  {rgb(0xba, 0x68, 0xc8), 1.5, solid, draw.BoxGlyph{}},
	"redislock":           {rgb(0x8d, 0x6e, 0x63), 1.5, dotted, draw.CrossGlyph{}},
	"rueidislock":         {rgb(0x75, 0x75, 0x75), 1.5, dotted, draw.CrossGlyph{}},
}

// styleOf is a driver's style; a grey one if it is not known.
func styleOf(driver string) style {
	if s, ok := styles[driver]; ok {
		return s
	}
	return style{rgb(0xb0, 0xb0, 0xb0), 1.5, solid, draw.CircleGlyph{}}
}

// line is the style of a driver's line.
func (s style) line() draw.LineStyle {
	return draw.LineStyle{Color: s.color, Width: s.width, Dashes: s.dashes}
}

// glyph is the style of its points.
func (s style) glyph() draw.GlyphStyle {
	return draw.GlyphStyle{Color: s.color, Radius: 2 + s.width/2, Shape: s.shape}
}

func rgb(r, g, b uint8) color.RGBA { return color.RGBA{r, g, b, 0xff} }

var (
	ink   = rgb(0x33, 0x33, 0x33)
	faint = rgb(0xe4, 0xe4, 0xe4)
	shade = color.NRGBA{0xd3, 0x2f, 0x2f, 0x18}
)
