package render

import (
	"fmt"
	"html"
	"math"
	"strings"

	"github.com/redlock-go/redlock/bench/result"
)

// The size of a plot, in units of which a page has as many as it has room for.
const (
	width   = 640.0
	left    = 62.0
	right   = 14.0
	top     = 48.0
	inner   = 300.0 // height of what the axes enclose
	foot    = 44.0  // for the labels of the x axis
	entry   = 18.0  // height of a line of the legend
	entries = 3     // in a line of it
)

// plot is one picture. Its y axis is logarithmic.
type plot struct {
	Name, title, under, x string
	unit                  func(float64) string // of the y axis
	ticks                 []tick               // of the x axis
	low, high             float64              // of the x axis
	shade                 [2]float64           // a part of the x axis
	series                []curve
	bottom, peak          float64 // of the y axis
}

type tick struct {
	at    float64
	label string
}

// point is a median, and the lowest and the highest round.
type point struct{ x, y, low, high float64 }

// curve is a driver's, in runs of points between which the line is broken.
type curve struct {
	driver      *result.Row
	lines, dots bool
	runs        [][]point
}

// add adds points to the last curve, if it is of the same driver, or a new one.
func (p *plot) add(c curve, points []point) {
	if len(points) == 0 {
		return
	}
	if n := len(p.series); n == 0 || p.series[n-1].driver != c.driver {
		p.series = append(p.series, c)
	}
	last := &p.series[len(p.series)-1]
	last.runs = append(last.runs, points)
}

// fit sets the y axis around what is on it, with some room.
func (p *plot) fit() {
	p.bottom, p.peak = math.Inf(1), 0
	for _, c := range p.series {
		for _, run := range c.runs {
			for _, at := range run {
				p.bottom, p.peak = min(p.bottom, max(at.low, at.y/10)), max(p.peak, at.high)
			}
		}
	}
	const room = 1.2
	p.bottom, p.peak = p.bottom/room, p.peak*room
}

func (p *plot) px(x float64) float64 {
	return left + (width-left-right)*(x-p.low)/(p.high-p.low)
}

func (p *plot) py(y float64) float64 {
	return top + inner*math.Log(p.peak/max(y, p.bottom))/math.Log(p.peak/p.bottom)
}

// path joins points.
func (p *plot) path(points []point, of func(point) float64) string {
	var b strings.Builder
	for i, at := range points {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%.1f,%.1f", p.px(at.x), p.py(of(at)))
	}
	return b.String()
}

// SVG is the picture. Its colours are those of the style sheet.
func (p *plot) SVG() string {
	p.fit()
	crowd := "plot"
	if len(p.series) > 2*entries {
		crowd += " crowd"
	}
	lines := (len(p.series) + entries - 1) / entries
	height := top + inner + foot + entry*float64(lines)
	var b strings.Builder
	add := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	text := func(x, y float64, class, text string) {
		add(`<text x="%.1f" y="%.1f" class="%s">%s</text>`, x, y, class, html.EscapeString(text))
	}
	add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" class="%s" role="img" aria-label="%s">`, width, height, crowd, html.EscapeString(p.title+", "+p.under))
	text(left, 18, "title", p.title)
	text(left, 36, "soft", p.under)
	p.axes(add, text)
	if p.shade[1] > 0 {
		add(`<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" class="shade"/>`, p.px(p.shade[0]), top, p.px(p.shade[1])-p.px(p.shade[0]), inner)
	}
	for i := len(p.series) - 1; i >= 0; i-- { // ours is first in the legend, and on top
		p.draw(add, p.series[i], i)
	}
	for i, c := range p.series {
		x := left + (width-left)/entries*float64(i%entries)
		y := top + inner + foot + entry*float64(i/entries) + 4
		name := c.driver.Driver
		if c.driver.Weaker != "" {
			name += " (" + c.driver.Weaker + ")"
		}
		add(`<g class="%s"><path d="M%.1f %.1fh24" class="line"/></g>`, class(c.driver.Driver, i), x, y-4)
		text(x+30, y, "tick", name)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// axes draws the grid and its labels.
func (p *plot) axes(add func(string, ...any), text func(float64, float64, string, string)) {
	decades := math.Log10(p.peak / p.bottom)
	for e := math.Floor(math.Log10(p.bottom)); e <= math.Log10(p.peak); e++ {
		for m := 1.0; m < 10; m++ {
			v := m * math.Pow(10, e)
			if v < p.bottom || v > p.peak {
				continue
			}
			add(`<path d="M%.1f %.1fH%.1f" class="grid"/>`, left, p.py(v), width-right)
			if m == 1 || decades < 3.2 && (m == 2 || m == 5) || decades < 0.7 {
				text(left-6, p.py(v)+4, "tick end", p.unit(v))
			}
		}
	}
	for _, t := range p.ticks {
		add(`<path d="M%.1f %.1fV%.1f" class="grid"/>`, p.px(t.at), top, top+inner)
		text(p.px(t.at), top+inner+15, "tick middle", t.label)
	}
	text((left+width-right)/2, top+inner+31, "soft middle", p.x)
	text(width-right, 18, "soft end", "y: log scale")
	add(`<path d="M%.1f %.1fV%.1fH%.1f" class="axis"/>`, left, top, top+inner, width-right)
}

// draw draws one driver: its rounds as a band, its medians on it.
func (p *plot) draw(add func(string, ...any), c curve, i int) {
	add(`<g class="%s">`, class(c.driver.Driver, i))
	for _, run := range c.runs {
		if c.lines && len(run) > 1 {
			back := make([]point, len(run))
			for i, at := range run {
				back[len(run)-1-i] = at
			}
			if rounds := len(c.driver.Rounds); rounds > 1 {
				add(`<polygon points="%s %s" class="band"/>`, p.path(run, func(a point) float64 { return a.low }), p.path(back, func(a point) float64 { return a.high }))
			}
			add(`<polyline points="%s" class="line"/>`, p.path(run, func(a point) float64 { return a.y }))
		}
		for _, at := range run {
			if !c.lines {
				add(`<path d="M%.1f %.1fV%.1f" class="bar"/>`, p.px(at.x), p.py(at.low), p.py(at.high))
			}
			if c.dots {
				add(`<circle cx="%.1f" cy="%.1f" r="3"><title>%s: %s</title></circle>`, p.px(at.x), p.py(at.y), html.EscapeString(c.driver.Driver), digits(at.y))
			}
		}
	}
	add(`</g>`)
}
