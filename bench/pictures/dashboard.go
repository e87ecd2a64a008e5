package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/prometheus/promql"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// panel is what is drawn of a panel of grafana.json.
type panel struct {
	Title       string
	GridPos     struct{ X, Y, W, H int }
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct{ Expr, LegendFormat string }
}

// drawDashboard draws the panels where the dashboard has them.
func drawDashboard(r *recording) ([]byte, error) {
	text, err := os.ReadFile("../metrics/grafana.json")
	if err != nil {
		return nil, err
	}
	var d struct{ Panels []panel }
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, err
	}
	tiles := draw.Tiles{Cols: 3, Rows: (len(d.Panels) + 2) / 3, PadX: 12, PadY: 14}
	s := newSheet(1020, vg.Length(tiles.Rows)*200+60, "What the dashboard shows of a client of five masters", story)
	for _, panel := range d.Panels {
		p, legend, err := panel.plot(r)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", panel.Title, err)
		}
		const names = 74 // wide
		at := tiles.At(s.Canvas, panel.GridPos.X/panel.GridPos.W, panel.GridPos.Y/panel.GridPos.H)
		p.Draw(draw.Crop(at, 0, -names, 0, 0))
		legend.Draw(draw.Crop(at, at.Max.X-at.Min.X-names+6, 0, 0, -24))
	}
	return s.bytes(), nil
}

// units are what a title says of the values below it.
var units = map[string]string{"s": ", seconds", "ops": ", a second"}

// plot draws the curves of a panel, and has their names apart.
func (panel panel) plot(r *recording) (*plot.Plot, plot.Legend, error) {
	p, legend := newPlot(panel.Title+units[panel.FieldConfig.Defaults.Unit]), newLegend()
	legend.ThumbnailWidth = 12
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, r.now.Seconds(), 0, 0
	colour := 0
	for _, target := range panel.Targets {
		curves, err := r.query(target.Expr)
		if err != nil {
			return nil, legend, err
		}
		isNode := strings.Contains(target.Expr, "by (node)") // of these all are shown, each in its colour
		for _, curve := range curves {
			if !isNode && len(curves) > 1 && !slices.ContainsFunc(curve.Floats, func(at promql.FPoint) bool { return at.F > 0 }) {
				continue
			}
			name := variable.ReplaceAllStringFunc(target.LegendFormat, func(v string) string { return curve.Metric.Get(strings.Trim(v, "{}")) })
			if isNode {
				colour, _ = strconv.Atoi(strings.TrimPrefix(name, "node "))
			}
			style := line(colours[colour%len(colours)], 1.3)
			for _, part := range connected(curve.Floats) {
				p.Add(&plotter.Line{XYs: part, LineStyle: style})
			}
			legend.Add(name, &plotter.Line{LineStyle: style})
			colour++
		}
	}
	p.Y.Max = cmp.Or(p.Y.Max, 1) * 1.05
	return p, legend, nil
}

// variable is a label in the name of a curve.
var variable = regexp.MustCompile(`{{\w+}}`)

// connected splits points where some are missing.
func connected(points []promql.FPoint) (parts []plotter.XYs) {
	next := int64(-1)
	for _, at := range points {
		if math.IsNaN(at.F) {
			continue
		}
		if at.T != next {
			parts = append(parts, nil)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], plotter.XY{X: float64(at.T) / 1000, Y: at.F})
		next = at.T + every.Milliseconds()
	}
	return parts
}
