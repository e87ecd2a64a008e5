package render

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/result"
)

// The sizes of a picture.
const (
	panelWidth  = 340.0
	panelHeight = 270.0 // of what the axes enclose
	marginLeft  = 58.0
	marginRight = 16.0
	marginTop   = 112.0
	axisHeight  = 46.0 // labels of the x axis
	entryHeight = 19.0 // a line of the legend
	entries     = 5    // in a line of it
)

// pictured are the measures that a picture shows, a panel each: what a lock costs the client, what the client adds
// to its time, and how many there are a second, up to what the servers can do.
var pictured = []string{"cpu", "added", "pairs"}

// style is the colour of a driver on a light and on a dark ground. Ours is bold, and the
// yardsticks are dashed.
type style struct {
	driver, light, dark string
	width               float64
	dashes              string
}

// styles are those of known drivers, and after them some for others.
var styles = []style{
	{"redlock", "#d81159", "#ff4d8d", 3.5, "none"},
	{"redlock-portable", "#e8749d", "#ffa3c2", 2, "none"},
	{"redlock-patient", "#b3124a", "#f7a1c4", 2, "3 3"},
	{"redlock-submit", "#8c0f4a", "#d9659b", 2, "8 3"},
	{"floor", "#444444", "#dddddd", 2, "7 4"},
	{"floor-goroutines", "#888888", "#999999", 2, "7 4"},
	{"autopipeline", "#1565c0", "#5aa2f5", 2, "none"},
	{"autopipeline-quorum", "#56a5ec", "#a8d0fb", 2, "none"},
	{"redsync-goredis", "#2e7d32", "#58b85d", 2, "none"},
	{"redsync-redigo", "#d35400", "#ff8a3c", 2, "none"},
	{"redsync-rueidis", "#6a1b9a", "#b06be0", 2, "none"},
	{"redislock", "#8d6e63", "#c0a095", 2, "2 3"},
	{"rueidislock", "#0f7f83", "#4fc4c7", 2, "2 3"},
	{"", "#00796b", "#4db6ac", 2, "none"},
	{"", "#ad8b00", "#ffd54f", 2, "none"},
	{"", "#5d4037", "#bcaaa4", 2, "none"},
}

// styleOf is the number of the style of the i-th driver of a picture.
func styleOf(driver string, i int) int {
	if at := slices.IndexFunc(styles, func(s style) bool { return s.driver == driver }); at >= 0 {
		return at
	}
	unknown := slices.IndexFunc(styles, func(s style) bool { return s.driver == "" })
	return unknown + i%(len(styles)-unknown)
}

// sheet is the style sheet. The picture has a ground of its own, so it is readable wherever
// it is shown.
func sheet() string {
	var light, dark, rest strings.Builder
	for i, s := range styles {
		fmt.Fprintf(&light, "--d%d:%s;", i, s.light)
		fmt.Fprintf(&dark, "--d%d:%s;", i, s.dark)
		fmt.Fprintf(&rest, ".d%d{color:var(--d%d)}.d%d .line{stroke-width:%g;stroke-dasharray:%s}\n", i, i, i, s.width, s.dashes)
	}
	return "svg{--ink:#222;--soft:#666;--grid:#e6e6e6;--ground:#fff;" + light.String() + "}\n" +
		"@media (prefers-color-scheme:dark){svg{--ink:#e8e8e8;--soft:#a3a8ae;--grid:#33373d;--ground:#15181c;" + dark.String() + "}}\n" +
		`text{fill:var(--ink);font:12px system-ui,sans-serif} .title{font-size:15px;font-weight:600} .soft{fill:var(--soft)}
.end{text-anchor:end} .middle{text-anchor:middle} .ground{fill:var(--ground)} .grid{stroke:var(--grid)} .axis{stroke:var(--soft);fill:none}
.line{stroke:currentColor;fill:none;stroke-linejoin:round} .limit{stroke:var(--ink);fill:none;stroke-width:1.5;stroke-dasharray:1 3} .band{fill:currentColor;opacity:.12} circle{fill:currentColor}
` + rest.String()
}

// curve is the points of a driver in a panel.
type curve struct {
	row    *result.Row
	points []point
}

// point is a median, with the lowest and the highest round.
type point struct{ x, y, low, high float64 }

// panel is one measure over one dimension. Its y axis is logarithmic, and the values of the
// x axis are as far apart as each other.
type panel struct {
	measure
	x, top       float64 // of the corner
	bottom, peak float64 // of the y axis
	labels       []string
	curves       []curve
	limit        []point // of the servers
}

// canvas is an SVG that is being written.
type canvas struct{ bytes.Buffer }

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(c, format+"\n", args...) }

func (c *canvas) text(x, y float64, class, text string) {
	c.add(`<text x="%.1f" y="%.1f" class="%s">%s</text>`, x, y, class, html.EscapeString(text))
}

// Picture draws pairs per second and client CPU as an SVG, over the first thing in which the
// cells of a run differ. It is nil where they do not differ.
func Picture(run *result.Run) []byte {
	if len(run.Groups) == 0 {
		return nil
	}
	all := byScenario(run.Groups)[0]
	differ := varied(all)
	if len(differ) == 0 {
		return nil
	}
	axis := differ[0]
	groups := slices.DeleteFunc(slices.Clone(all), func(g *result.Group) bool {
		return slices.ContainsFunc(differ[1:], func(d dimension) bool { return d.value(g.Cell) != d.value(all[0].Cell) })
	})
	if len(groups) < 2 {
		return nil
	}
	var rows []*result.Row
	for _, r := range groups[0].Rows {
		if slices.ContainsFunc(groups, func(g *result.Group) bool { return g.Row(r.Driver).Error == "" }) {
			rows = append(rows, r)
		}
	}
	lines := (len(rows) + entries - 1) / entries
	width := panelWidth * float64(len(pictured))
	height := marginTop + panelHeight + axisHeight + entryHeight*float64(lines) + 10
	c := new(canvas)
	c.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, width, height, "client CPU, added latency and pairs per second")
	c.add("<style>\n%s</style>", sheet())
	c.add(`<rect width="%.0f" height="%.0f" rx="8" class="ground"/>`, width, height)
	// What is constant, without the value that the axis shows.
	rest := strings.Replace(Title(groups[0].Cell), axis.title(groups[0].Cell)+", ", "", 1)
	c.text(marginLeft, 24, "title", "One acquire and one release: what it costs the client, what the client adds to its time, how many a second")
	c.text(marginLeft, 42, "soft", fmt.Sprintf("%s; %s", rest, servers(run.Head)))
	c.text(marginLeft, 58, "soft", fmt.Sprintf("commit %s, %s; medians of %d, bands are lowest to highest", run.Commit, run.Date.Format(time.DateOnly), run.Rounds))
	c.text(marginLeft, 74, "soft", run.Machine+"; "+place(run.Head))
	for i, name := range pictured {
		p := newPanel(named(name), groups, rows, axis)
		p.x = panelWidth * float64(i)
		if name == "pairs" {
			p.bound(run, groups)
		}
		p.draw(c, axis.label)
	}
	for i, r := range rows {
		x := marginLeft + (width-marginLeft)/entries*float64(i%entries)
		y := marginTop + panelHeight + axisHeight + entryHeight*float64(i/entries) + 8
		text := r.Driver
		if r.Weaker != "" {
			text += " (" + r.Weaker + ")"
		}
		c.add(`<g class="d%d"><path d="M%.1f %.1fh24" class="line"/></g>`, styleOf(r.Driver, i), x, y-4)
		c.text(x+30, y, "", text)
	}
	c.add("</svg>")
	return c.Bytes()
}

// newPanel collects the points of a measure, and fits the y axis around them.
func newPanel(m measure, groups []*result.Group, rows []*result.Row, axis dimension) *panel {
	p := &panel{measure: m, top: marginTop, bottom: math.Inf(1)}
	for _, g := range groups {
		p.labels = append(p.labels, axis.value(g.Cell))
	}
	for _, row := range rows {
		one := curve{row: row}
		for i, g := range groups {
			r := g.Row(row.Driver)
			if v := m.of(&r.Figures); r.Error == "" && v > 0 {
				one.points = append(one.points, point{float64(i), v, m.of(&r.Low), m.of(&r.High)})
				p.bottom, p.peak = min(p.bottom, max(m.of(&r.Low), v/10)), max(p.peak, m.of(&r.High))
			}
		}
		p.curves = append(p.curves, one)
	}
	const room = 1.25
	p.bottom, p.peak = p.bottom/room, p.peak*room
	return p
}

// bound adds the servers' limit.
func (p *panel) bound(run *result.Run, groups []*result.Group) {
	for i, g := range groups {
		if y := limit(run, g); y > 0 {
			p.limit = append(p.limit, point{x: float64(i), y: y})
			p.peak = max(p.peak, 1.25*y)
		}
	}
}

func (p *panel) px(x float64) float64 {
	const side = 0.15 // of the distance between two values
	return p.x + marginLeft + (panelWidth-marginLeft-marginRight)*(x+side)/(float64(len(p.labels)-1)+2*side)
}

func (p *panel) py(y float64) float64 {
	return p.top + panelHeight*math.Log(p.peak/max(y, p.bottom))/math.Log(p.peak/p.bottom)
}

// rate is a round number, short.
func rate(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%gk", v/1000)
	}
	return fmt.Sprintf("%g", v)
}

// path joins points.
func (p *panel) path(points []point, of func(point) float64) string {
	parts := make([]string, len(points))
	for i, at := range points {
		parts[i] = fmt.Sprintf("%.1f,%.1f", p.px(at.x), p.py(of(at)))
	}
	return strings.Join(parts, " ")
}

// draw draws the axes, and each driver: its rounds as a band, its medians on it.
func (p *panel) draw(c *canvas, xLabel string) {
	if p.peak == 0 { // nothing was measured
		return
	}
	left, right, bottom := p.x+marginLeft, p.x+panelWidth-marginRight, p.top+panelHeight
	c.text(left, p.top-12, "", p.heading+" (log scale)")
	marks := []float64{1, 2, 5}
	if p.peak < 8*p.bottom {
		marks = []float64{1, 1.5, 2, 3, 4, 5, 6, 8}
	}
	for e := math.Floor(math.Log10(p.bottom)); e <= math.Log10(p.peak); e++ {
		for _, m := range marks {
			if v := m * math.Pow(10, e); v >= p.bottom && v <= p.peak {
				c.add(`<path d="M%.1f %.1fH%.1f" class="grid"/>`, left, p.py(v), right)
				c.text(left-6, p.py(v)+4, "end", rate(v))
			}
		}
	}
	for i, label := range p.labels {
		c.add(`<path d="M%.1f %.1fV%.1f" class="grid"/>`, p.px(float64(i)), p.top, bottom)
		c.text(p.px(float64(i)), bottom+17, "middle", label)
	}
	c.text((left+right)/2, bottom+33, "soft middle", xLabel)
	c.add(`<path d="M%.1f %.1fV%.1fH%.1f" class="axis"/>`, left, p.top, bottom, right)
	if len(p.limit) > 1 {
		c.add(`<polyline points="%s" class="limit"/>`, p.path(p.limit, func(a point) float64 { return a.y }))
		first, last := p.limit[0], p.limit[len(p.limit)-1]
		if last.y < first.y { // the curves fall: at its end the text would be among them
			c.text(p.px(first.x)+10, p.py(first.y)+4, "soft", "the servers' limit")
		} else {
			c.text(right-4, p.py(last.y)-6, "soft end", "the servers' limit")
		}
	}
	for i, one := range slices.Backward(p.curves) { // ours is first, and on top
		c.add(`<g class="d%d">`, styleOf(one.row.Driver, i))
		back := slices.Clone(one.points)
		slices.Reverse(back)
		c.add(`<polygon points="%s %s" class="band"/>`, p.path(one.points, func(a point) float64 { return a.low }), p.path(back, func(a point) float64 { return a.high }))
		c.add(`<polyline points="%s" class="line"/>`, p.path(one.points, func(a point) float64 { return a.y }))
		for _, at := range one.points {
			c.add(`<circle cx="%.1f" cy="%.1f" r="3"><title>%s: %s</title></circle>`, p.px(at.x), p.py(at.y), html.EscapeString(one.row.Driver), digits(at.y))
		}
		c.add("</g>")
	}
}
