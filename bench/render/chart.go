package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/result"
)

// Chart is what a picture of a run shows: how drivers did over the first thing in which the cells differ. The module
// bench/pictures draws it.
type Chart struct {
	File    string // of the picture
	About   []string
	Axis    string
	Labels  []string // of the groups, on the axis
	Groups  []*result.Group
	Drivers []*result.Row // those that have figures in a group at least
	Limits  []float64     // the most pairs a second that the servers' processors allow in a group, or 0
}

// NewChart returns the chart of a run, or nil where its cells do not differ.
func NewChart(run *result.Run) *Chart {
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
	// What is constant, without the value that the axis shows.
	rest := strings.Replace(Title(groups[0].Cell)+", ", axis.title(groups[0].Cell)+", ", "", 1)
	c := &Chart{File: cmp.Or(run.Section, "results") + ".svg", Axis: axis.label, Groups: groups, Drivers: working(groups), About: []string{
		"One acquire and one release: what it costs the client, what the client adds to its time, how many a second",
		rest + servers(run.Head),
		fmt.Sprintf("commit %s, %s; medians of %d, bands are lowest to highest; y axes are logarithmic", run.Commit, run.Date.Format(time.DateOnly), run.Rounds),
		run.Machine + "; " + place(run.Head),
	}}
	for _, g := range groups {
		c.Labels, c.Limits = append(c.Labels, axis.value(g.Cell)), append(c.Limits, limit(run, g))
	}
	return c
}
