package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/bench/result"
)

// usual are the measures of a run that names none.
var usual = []string{"pairs", "floor", "p50", "p99", "cpu", "allocs", "seconds", "ideal", "p999", "fair", "goroutine", "process", "handoff", "cross", "commands", "orphan"}

// summarize writes every run as Markdown, ready to be pasted; what they have in
// common comes first.
func summarize(w io.Writer, runs []*result.Run) {
	first := runs[0]
	fmt.Fprint(w, "# What was measured\n\n")
	fmt.Fprintf(w, "* machine: %s\n* servers: %s, unless a section says otherwise\n* commit %s, %s\n", first.Machine, servers(first.Head), first.Commit, first.Date.Format(time.DateOnly))
	fmt.Fprintf(w, "* each figure: %s; the drivers took turns\n* in parentheses: the lowest and the highest round\n", method(first.Head))
	for _, s := range first.Servers {
		if s.Down != "" {
			fmt.Fprintf(w, "* %s was down: %s\n", s.Addr, oneLine(s.Down))
		}
	}
	fmt.Fprintln(w)
	for _, run := range runs {
		section(w, run, first)
	}
	if said := notes(runs); len(said) > 0 {
		fmt.Fprintf(w, "## Before you compare\n\n* %s\n", strings.Join(said, "\n* "))
	}
}

// section writes the tables of one run.
func section(w io.Writer, run, first *result.Run) {
	fmt.Fprintf(w, "## %s\n\n", cmp.Or(run.Title, "Results"))
	if run.Args != "" {
		fmt.Fprintf(w, "`%s`", run.Args)
		if s := servers(run.Head); s != "" && s != servers(first.Head) {
			fmt.Fprintf(w, " on %s", s)
		}
		if method(run.Head) != method(first.Head) && len(run.Groups) > 0 {
			fmt.Fprintf(w, "; %s", method(run.Head))
		}
		fmt.Fprint(w, "\n\n")
	}
	for _, why := range run.Failed {
		fmt.Fprintf(w, "Not complete: %s\n\n", oneLine(why))
	}
	if len(run.Groups) > 0 {
		shows := run.Shows
		if len(shows) == 0 {
			shows = slices.DeleteFunc(slices.Clone(usual), func(name string) bool { return !slices.ContainsFunc(run.Groups, named(name).says) })
		}
		for _, name := range shows {
			if len(run.Groups) > 1 {
				table(w, run.Groups, named(name))
			}
		}
		if len(run.Groups) == 1 {
			single(w, run.Groups[0], shows)
		}
		missing(w, run.Groups)
		losses(w, run.Groups)
	}
	found(w, run.Found)
}

// table writes one measure: a row a driver, a column a cell.
func table(w io.Writer, groups []*result.Group, m measure) {
	axis, labels := axes(groups)
	fmt.Fprintf(w, "%s, by %s:\n\n", m.heading, axis)
	heads(w, labels)
	if m.name == "acquire" || m.name == "release" {
		fmt.Fprint(w, "| *a PING* |")
		for _, g := range groups {
			fmt.Fprintf(w, " %s |", halves(g.Rows[0].PingP50, g.Rows[0].PingP99))
		}
		fmt.Fprintln(w)
	}
	lines(w, groups[0].Rows, len(groups), func(i int, r *result.Row) string { return m.full(groups[i], groups[i].Row(r.Driver)) })
}

// single writes the only cell of a run: a row a driver, a column a measure.
func single(w io.Writer, g *result.Group, shows []string) {
	fmt.Fprintf(w, "%s:\n\n", Title(g.Cell))
	headings := make([]string, len(shows))
	for i, name := range shows {
		headings[i] = named(name).heading
	}
	heads(w, headings)
	lines(w, g.Rows, len(shows), func(i int, r *result.Row) string { return named(shows[i]).full(g, r) })
}

// heads writes the first lines of a table.
func heads(w io.Writer, headings []string) {
	fmt.Fprintf(w, "| driver | %s |\n|---|%s\n", strings.Join(headings, " | "), strings.Repeat("---|", len(headings)))
}

// lines writes the rows of a table, our drivers in bold.
func lines(w io.Writer, rows []*result.Row, columns int, cell func(column int, r *result.Row) string) {
	for _, r := range rows {
		head := name(r)
		if ours(r) {
			head = "**" + r.Driver + "**"
		}
		fmt.Fprintf(w, "| %s |", head)
		for i := range columns {
			fmt.Fprintf(w, " %s |", cell(i, r))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}

// full is the measure of a row with its range.
func (m measure) full(g *result.Group, r *result.Row) string {
	if m.ranged && r.Error == "" && len(r.Rounds) > 1 {
		return m.show(g, r) + " (" + m.span(r) + ")"
	}
	return m.show(g, r)
}

// missing says why there are no figures where there are none, and which errors
// there were: the reasons once, however many cells have them.
func missing(w io.Writer, groups []*result.Group) {
	var order []string
	where := map[string][]string{}
	add := func(what, label string) {
		if where[what] == nil {
			order = append(order, what)
		}
		where[what] = append(where[what], label)
	}
	_, labels := axes(groups)
	for i, g := range groups {
		for _, r := range g.Rows {
			switch {
			case r.Error != "":
				add(fmt.Sprintf("no figures of %s: %s", r.Driver, reason(r)), labels[i])
			case r.Errors > 0:
				add(fmt.Sprintf("errors of %s, of which the first: %s", r.Driver, oneLine(cmp.Or(r.FirstError, "unknown"))),
					fmt.Sprintf("%s: %.0f", labels[i], r.Errors))
			}
		}
	}
	for _, what := range order {
		fmt.Fprintf(w, "* %s (%s)\n", what, strings.Join(where[what], "; "))
	}
	if len(order) > 0 {
		fmt.Fprintln(w)
	}
}

// losses says where others are ahead of the first driver. Those that promise
// less do not count.
func losses(w io.Writer, groups []*result.Group) {
	_, labels := axes(groups)
	var lines []string
	for _, name := range []string{"pairs", "p50", "p99", "cpu"} {
		m := named(name)
		var where []string
		for i, g := range groups {
			if ahead := ahead(g, m.of, name == "pairs"); len(ahead) > 0 {
				where = append(where, labels[i]+": "+strings.Join(ahead, ", "))
			}
		}
		if len(where) > 0 {
			lines = append(lines, fmt.Sprintf("* %s – %s\n", m.heading, strings.Join(where, "; ")))
		}
	}
	if len(lines) > 0 {
		fmt.Fprintf(w, "Where %s is behind, its figure as a multiple of theirs:\n\n%s\n", groups[0].Rows[0].Driver, strings.Join(lines, ""))
	}
}

// ahead are the rows of a group that do better than its first, and the first's
// figure as a multiple of theirs.
func ahead(g *result.Group, of func(*result.Figures) float64, more bool) []string {
	first := g.Rows[0]
	if first.Error != "" {
		return nil
	}
	var all []string
	for _, r := range g.Rows[1:] {
		if r.Error != "" || r.Weaker != "" || of(&r.Figures) == 0 {
			continue
		}
		ratio := of(&first.Figures) / of(&r.Figures)
		if more && ratio < 0.995 || !more && ratio > 1.005 {
			all = append(all, fmt.Sprintf("%s %.2f", r.Driver, ratio))
		}
	}
	return all
}

// found writes what is no cell, part after part.
func found(w io.Writer, notes []result.Note) {
	for len(notes) > 0 {
		n := slices.IndexFunc(notes, func(n result.Note) bool { return n.Part != notes[0].Part })
		if n < 0 {
			n = len(notes)
		}
		fmt.Fprintf(w, "%s:\n\n", notes[0].Part)
		for _, note := range notes[:n] {
			fmt.Fprintf(w, "* %s: %s\n", note.What, figuresOf(note))
		}
		fmt.Fprintln(w)
		notes = notes[n:]
	}
}

// axes says what the groups differ in, and each one's place.
func axes(groups []*result.Group) (axis string, labels []string) {
	labels = make([]string, len(groups))
	var names []string
	scenario := dimension{"scenario", "scenario", func(c result.Cell) string { return string(c.Scenario) }, nil, false, nil}
	for _, d := range append([]dimension{scenario}, dimensions...) {
		if !slices.ContainsFunc(groups, func(g *result.Group) bool { return d.of(g.Cell) != d.of(groups[0].Cell) }) {
			continue
		}
		names = append(names, d.label)
		for i, g := range groups {
			if labels[i] != "" {
				labels[i] += " / "
			}
			labels[i] += d.of(g.Cell)
		}
	}
	if len(names) == 0 {
		labels[0] = Title(groups[0].Cell)
	}
	return strings.Join(names, " and "), labels
}
