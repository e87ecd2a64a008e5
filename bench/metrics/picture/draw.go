package main

import (
	"cmp"
	"fmt"
	"html"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// panel is what is drawn of a panel of grafana.json.
type panel struct {
	Title       string
	GridPos     struct{ X, Y, W, H float64 }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct{ Expr, LegendFormat string }
}

// style has the colours for a light and a dark ground.
const style = `svg{--ink:#222;--soft:#666;--grid:#e6e6e6;--ground:#f4f5f5;--panel:#fff;--c0:#1565c0;--c1:#d81159;--c2:#2e7d32;--c3:#b26a00;--c4:#6a1b9a}
@media(prefers-color-scheme:dark){svg{--ink:#e8e8e8;--soft:#a3a8ae;--grid:#33373d;--ground:#0d0f12;--panel:#181b1f;--c0:#6db3ff;--c1:#ff5c96;--c2:#67c46c;--c3:#ffb74d;--c4:#c08be8}}
text{fill:var(--soft);font:11px system-ui,sans-serif}.title{fill:var(--ink);font-size:13px;font-weight:600}.end{text-anchor:end}.middle{text-anchor:middle}
.ground{fill:var(--ground)}.panel{fill:var(--panel);stroke:var(--grid)}.grid{stroke:var(--grid)}.line{fill:none;stroke-width:1.6}
.c0{stroke:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.c4{stroke:var(--c4)}`

const colours = 5

// draw draws the panels where the dashboard has them.
func draw(out io.Writer, panels []panel, all []scrape) (err error) {
	fmt.Fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 834\" role=\"img\" aria-label=\"the dashboard\">\n<style>\n%s\n</style>\n", style)
	text := func(x, y float64, class, text string) {
		fmt.Fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">%s</text>\n", x, y, class, html.EscapeString(text))
	}
	fmt.Fprintln(out, `<rect width="960" height="834" rx="8" class="ground"/>`)
	text(10, 20, "", "A client of five masters: at 12 s one stops answering, at 29 s one ends and returns without its data, at 50 s a lock is deleted by hand.")
	for _, p := range panels {
		x, y, w, h := p.GridPos.X*40+4, p.GridPos.Y*25+32, p.GridPos.W*40-8, p.GridPos.H*25-8
		fmt.Fprintf(out, "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" rx=\"4\" class=\"panel\"/>\n", x, y, w, h)
		text(x+10, y+18, "title", p.Title)
		lines, peak, isNode := map[string][]float64{}, 0.0, false
		for i, target := range p.Targets {
			got, failed := query(target.Expr, all)
			err = cmp.Or(err, failed)
			for by, values := range got {
				if by == "" {
					by = fmt.Sprint(i, target.LegendFormat) // in the order of the dashboard
				}
				isNode = isNode || strings.Contains(by, ":") // of these all are shown, so that each has its colour
				if isNode || len(got) == 1 || slices.ContainsFunc(values, func(v float64) bool { return v > 0 }) {
					lines[by] = values
				}
				for _, v := range values {
					if v > peak { // it may be NaN
						peak = v
					}
				}
			}
		}
		step := nice(peak / 3)
		px := func(i int) float64 { return x + 52 + (w-64)*float64(i)/float64(len(all)) }
		py := func(v float64) float64 { return y + h - 24 - (h-68)*v/(step*max(1, math.Ceil(peak/step))) }
		for v := 0.0; v < peak+step; v += step {
			fmt.Fprintf(out, "<path d=\"M%.1f %.1fH%.1f\" class=\"grid\"/>\n", x+52, py(v), x+w-12)
			text(x+47, py(v)+4, "end", shown(v, p.FieldConfig.Defaults.Unit))
		}
		for s := 0; s < int(long.Seconds()); s += 15 {
			text(px(s*int(1e9)/int(every)), y+h-8, "middle", fmt.Sprint(s, " s"))
		}
		at := x + 10
		for i, name := range sorted(lines) {
			short := strings.TrimLeft(name, "012")
			if isNode {
				short = fmt.Sprint("node ", i+1)
			}
			fmt.Fprintf(out, "<path d=\"M%.1f %.1fh12\" class=\"line c%d\"/>\n", at, y+31, i%colours)
			text(at+15, y+35, "", short)
			at += 28 + 5.6*float64(len(short))
			path := ""
			for n, v := range lines[name] {
				if pen := "L"; !math.IsNaN(v) {
					if n == 0 || math.IsNaN(lines[name][n-1]) {
						pen = "M"
					}
					path += fmt.Sprintf("%s%.1f %.1f", pen, px(n), py(v))
				}
			}
			fmt.Fprintf(out, "<path d=\"%s\" class=\"line c%d\"/>\n", path, i%colours)
		}
	}
	fmt.Fprintln(out, "</svg>")
	return err
}

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// nice is the next round number: 1, 2 or 5 and zeros.
func nice(v float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(cmp.Or(v, 1))))
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= v*0.999 {
			return m * unit
		}
	}
	return 10 * unit
}

func shown(v float64, unit string) string {
	switch {
	case unit == "s" && v > 0 && v < 1:
		return fmt.Sprintf("%.3g ms", v*1e3)
	case unit == "s":
		return fmt.Sprintf("%.3g s", v)
	case unit == "ops":
		return fmt.Sprintf("%.4g/s", v)
	}
	return fmt.Sprintf("%.4g", v)
}
