package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/bench/render"
	"github.com/redlock-go/redlock/bench/result"
)

// heights are those of the points of each path of a style, in the order of the picture.
func heights(svg, style string) (all [][]float64) {
	for _, path := range regexp.MustCompile(`<path d="([^"]+)" style="`+style+`"`).FindAllStringSubmatch(svg, -1) {
		var ys []float64
		for _, point := range regexp.MustCompile(`,([\d.]+)`).FindAllStringSubmatch(path[1], -1) {
			y, _ := strconv.ParseFloat(point[1], 64)
			ys = append(ys, y)
		}
		all = append(all, ys)
	}
	return all
}

// heightOf is that of a text.
func heightOf(t *testing.T, svg, text string) float64 {
	found := regexp.MustCompile(`y="-([\d.]+)"[^>]*>` + text + `<`).FindStringSubmatch(svg)
	require.NotNil(t, found, text)
	y, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	return y
}

// TestChart reads a picture as a person does: every driver is named, and its curve and its band lie, by the marks of
// the axis, where its rounds are.
func TestChart(t *testing.T) {
	lines := []result.Line{{Head: &result.Head{Section: "all", Commit: "abc", Own: 1}}}
	rates := map[string][]float64{"redlock": {2000, 40000}, "lone": {7000, 9000}, "floor": {3000, 90000}, "lost": {200, 1000}}
	drivers := []string{"redlock", "lone", "floor", "lost"}
	for _, driver := range drivers {
		for cell, c := range []int{1, 64} {
			for round, factor := range []float64{0.8, 1, 1.5} {
				r := &result.Result{Driver: driver, Cell: result.Cell{Scenario: "uncontended", Concurrency: c, Nodes: 5}, Round: round}
				y := rates[driver][cell] * factor
				r.Figures = result.Figures{PairsPerSec: y, CPUPerPair: 1e5 / y, Added: 1e6 / y, ServerCPU: 6e6 / y}
				if driver == "lone" {
					r.Weaker = "one server"
				}
				lines = append(lines, result.Line{Result: r})
			}
		}
	}
	svg := string(drawChart(render.NewChart(result.Collect(lines)[0])))
	for _, text := range []string{"redlock", `lone \(one server\)`, "floor", "lost", "the servers&#39; limit", "Client CPU, µs per pair", "Pairs per second", "goroutines", "64", ".*commit abc.*"} {
		require.Regexp(t, ">"+text+"<", svg)
	}
	require.NotContains(t, svg, "NaN")

	perLog := (heightOf(t, svg, "20000") - heightOf(t, svg, "10000")) / math.Ln2
	styles := map[string]string{
		"redlock": "#D81159;stroke-width:3", "lone": "#2E7D32;stroke-width:1.5;stroke-dasharray:2,3",
		"floor": "#444444;stroke-width:1.5;stroke-dasharray:7,4", "lost": "#6A1B9A;stroke-width:1.5",
	}
	bands := heights(svg, "fill:#.{6};fill-opacity:.{7}")
	require.Len(t, bands, 3*len(drivers))
	origin := heights(svg, "fill:none;stroke:"+styles["redlock"])[2][0]
	value := func(y float64) float64 { return 2000 * math.Exp((y-origin)/perLog) }
	for d, driver := range drivers {
		curves := heights(svg, "fill:none;stroke:"+styles[driver])
		require.Len(t, curves, 4, "%s: three panels and the legend", driver)
		for i, want := range rates[driver] {
			require.InEpsilon(t, want, value(curves[2][i]), 0.01, driver)
		}
		band := bands[len(bands)-1-d] // the first driver is on top
		for i, want := range []float64{0.8 * rates[driver][0], 0.8 * rates[driver][1], 1.5 * rates[driver][1], 1.5 * rates[driver][0]} {
			require.InEpsilon(t, want, value(band[i]), 0.01, driver)
		}
	}
}

// TestDashboard: what the dashboard asks for is understood, and named and drawn where there is something.
func TestDashboard(t *testing.T) {
	r := &recording{series: map[string][]promql.FPoint{}}
	for i := range 20 {
		text := fmt.Sprintf("# HELP a b\nredlock_operations_total{kind=\"acquire\",result=\"won\"} %d\nredlock_ready{redlock_group=\"0\"} 1\n", 15*i) +
			"redlock_operations_total{kind=\"acquire\",result=\"denied\"} 0\nredlock_operations_total{kind=\"extend\",result=\"never\"} 7\n"
		for node := range 2 {
			text += fmt.Sprintf("redlock_node_may_vote{node=\"node %d\",redlock_group=\"0\"} %d\n", node+1, max(node, i/4%2))
		}
		r.scrape(text)
	}
	svg, err := drawDashboard(r)
	require.NoError(t, err)
	for text, is := range map[string]bool{">won<": true, ">node 1<": true, ">node 2<": false, ">denied<": false, ">never<": false, "NaN": false, "Locks lost": true} {
		require.Equal(t, is, strings.Contains(string(svg), text), text)
	}
	won := heights(string(svg), "fill:none;stroke:#1565C0;stroke-width:1.3")[0]
	require.Len(t, won, 19, "a rate needs two scrapes")
	rates, err := r.query(`sum by (result) (rate(redlock_operations_total{job=~"$job",result="won"}[$__rate_interval]))`)
	require.NoError(t, err)
	require.Len(t, rates, 1)
	require.InDelta(t, 30, rates[0].Floats[len(rates[0].Floats)-1].F, 1e-9, "a second")
	missing, err := r.query("count by (node) (redlock_node_may_vote == 0)")
	require.NoError(t, err)
	require.Len(t, missing, 1)
	require.Len(t, connected(missing[0].Floats), 3, "the curve ends when the node has its vote back")
	_, err = r.query("avg(")
	require.Error(t, err)
}
