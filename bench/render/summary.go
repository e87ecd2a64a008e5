package render

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/redlock-go/redlock/bench/result"
)

// usual are the measures of a run that names none.
var usual = []string{"core", "added", "pair", "pairs", "seconds", "ideal", "fair", "goroutine", "process", "cross", "commands", "orphan"}

// Write writes README.md to a directory. It refers to a picture beside it for each run that has a [Chart].
func Write(dir string, runs []*result.Run) error {
	if len(runs) == 0 {
		return nil
	}
	var text bytes.Buffer
	summarize(&text, runs)
	return os.WriteFile(filepath.Join(dir, "README.md"), text.Bytes(), 0o644)
}

// summarize writes every run as Markdown, ready to be pasted; what they have in
// common comes first.
func summarize(w io.Writer, runs []*result.Run) {
	first := runs[0]
	fmt.Fprint(w, "# What was measured\n\n")
	if slices.ContainsFunc(runs, func(r *result.Run) bool { return slices.Contains(r.Drivers, yardstick) }) {
		fmt.Fprintf(w, "The *floor* is %s.\n\n", Yardstick)
	}
	fmt.Fprintf(w, "* machine: %s\n* processors: %s, unless a section has others\n* servers: %s, unless a section has others\n* commit %s, %s, unless a section has others\n", first.Machine, place(first.Head), servers(first.Head), first.Commit, first.Date.Format(time.DateOnly))
	fmt.Fprintf(w, "* each figure: %s; the drivers took turns\n* in parentheses: the lowest and the highest round\n", method(first.Head))
	for _, s := range first.Servers {
		if s.Down != "" {
			fmt.Fprintf(w, "* %s was down: %s\n", s.Addr, oneLine(s.Down))
		}
	}
	var body bytes.Buffer
	for _, run := range runs {
		section(&body, run, first)
	}
	growth(&body, runs)
	scale(&body, runs)
	moreCores(&body, runs)
	if all := notes(runs); len(all) > 0 {
		fmt.Fprintf(&body, "## Before you compare\n\n* %s\n", strings.Join(all, "\n* "))
	}
	var contents []string
	for line := range strings.Lines(body.String()) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			contents = append(contents, fmt.Sprintf("[%s](#%s)", title, anchor(title)))
		}
	}
	if len(contents) > 1 {
		fmt.Fprintf(w, "\n%s\n", strings.Join(contents, " ·\n"))
	}
	fmt.Fprintf(w, "\n%s", body.Bytes())
}

// anchor is how code hosts name a heading.
func anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, title)
}

// section writes the tables of one run.
func section(w io.Writer, run, first *result.Run) {
	fmt.Fprintf(w, "## %s\n\n", cmp.Or(run.Title, "Side by side"))
	var how []string
	if run.Args != "" {
		how = append(how, "`"+run.Args+"`")
	}
	if s := servers(run.Head); s != "" && s != servers(first.Head) {
		how = append(how, s)
	}
	if place(run.Head) != place(first.Head) {
		how = append(how, place(run.Head))
	}
	if run.Commit != first.Commit || run.Date.Format(time.DateOnly) != first.Date.Format(time.DateOnly) {
		how = append(how, fmt.Sprintf("commit %s, %s", run.Commit, run.Date.Format(time.DateOnly)))
	}
	if method(run.Head) != method(first.Head) && len(run.Groups) > 0 {
		how = append(how, method(run.Head))
	}
	if len(how) > 0 {
		fmt.Fprintf(w, "%s\n\n", strings.Join(how, "; "))
	}
	for _, why := range run.Failed {
		fmt.Fprintf(w, "Not complete: %s\n\n", oneLine(why))
	}
	if c := NewChart(run); c != nil {
		fmt.Fprintf(w, "![%s](%s)\n\n", cmp.Or(run.Title, "results"), c.File)
	}
	shows := run.Shows
	if len(shows) == 0 {
		shows = usual
	}
	for _, groups := range byScenario(run.Groups) {
		here := slices.DeleteFunc(slices.Clone(shows), func(name string) bool { return !slices.ContainsFunc(groups, named(name).has) })
		switch rows := working(groups); {
		case len(groups) == 1:
			cells(w, groups, groups[0].Rows, here)
		case len(rows) <= 2 && len(here) > 2:
			cells(w, groups, rows, here)
		default:
			for _, name := range here {
				table(w, run, groups, named(name))
			}
		}
		missing(w, groups)
		losses(w, groups)
	}
}

// working are the rows of the drivers with figures.
func working(groups []*result.Group) []*result.Row {
	return slices.DeleteFunc(slices.Clone(groups[0].Rows), func(r *result.Row) bool {
		return !slices.ContainsFunc(groups, func(g *result.Group) bool { return g.Row(r.Driver).Error == "" })
	})
}

// cells writes all measures of one driver or two, or of one cell: a row a driver in a cell, a column a measure.
func cells(w io.Writer, groups []*result.Group, rows []*result.Row, shows []string) {
	axis, labels := axes(groups)
	heading := []string{cmp.Or(axis, "cell"), "driver"}
	if len(groups) == 1 {
		fmt.Fprintf(w, "%s:\n\n", labels[0])
		heading, labels = heading[1:], []string{""}
	}
	for _, name := range shows {
		heading = append(heading, named(name).heading)
	}
	head(w, heading)
	for i, g := range groups {
		lines(w, labels[i], rows, len(shows), func(column int, r *result.Row) string {
			m := named(shows[column])
			if !m.has(g) {
				return "–"
			}
			return m.full(g, g.Row(r.Driver))
		})
	}
	fmt.Fprintln(w)
}

// table writes one measure: a row a driver, a column a cell.
func table(w io.Writer, run *result.Run, groups []*result.Group, m measure) {
	groups = slices.DeleteFunc(slices.Clone(groups), func(g *result.Group) bool { return !m.has(g) })
	axis, labels := axes(groups)
	fmt.Fprintf(w, "%s, by %s:\n\n", m.heading, cmp.Or(axis, "cell"))
	head(w, append([]string{"driver"}, labels...))
	if m.name == "acquire" || m.name == "release" {
		fmt.Fprint(w, "| *a PING* |")
		for _, g := range groups {
			fmt.Fprintf(w, " %s |", two(g.Rows[0].PingP50, g.Rows[0].PingP99))
		}
		fmt.Fprintln(w)
	}
	lines(w, "", groups[0].Rows, len(groups), func(i int, r *result.Row) string { return m.full(groups[i], groups[i].Row(r.Driver)) })
	if m.name == "pairs" && slices.ContainsFunc(groups, func(g *result.Group) bool { return limit(run, g) > 0 }) {
		fmt.Fprint(w, "| *the servers' limit* |")
		for _, g := range groups {
			fmt.Fprintf(w, " %s |", digits(limit(run, g)))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}

// head writes the first lines of a table.
func head(w io.Writer, columns []string) {
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
}

// lines writes rows of a table, our drivers in bold, behind the label of a cell.
func lines(w io.Writer, label string, rows []*result.Row, columns int, cell func(column int, r *result.Row) string) {
	for _, r := range rows {
		head := name(r)
		if ours(r) {
			head = "**" + r.Driver + "**"
		}
		head += unfair(r)
		if label != "" {
			head = label + " | " + head
		}
		fmt.Fprintf(w, "| %s |", head)
		for i := range columns {
			fmt.Fprintf(w, " %s |", cell(i, r))
		}
		fmt.Fprintln(w)
	}
}

// full is the measure of a row with its range.
func (m measure) full(g *result.Group, r *result.Row) string {
	text := m.show(g, r)
	if m.ranged && r.Error == "" && len(r.Rounds) > 1 {
		text += "<br>(" + m.span(r) + ")"
	}
	if m.also != nil && r.Error == "" {
		text += "<br>" + m.also(r)
	}
	return text
}

// missing lists why figures are missing, and which errors there were: each reason once, with
// the cells that have it.
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

// losses lists where other clients are ahead of the first driver. Ours, the floors, and those that promise less do not
// count: the tables have them.
func losses(w io.Writer, groups []*result.Group) {
	_, labels := axes(groups)
	var lines []string
	for _, name := range []string{"cpu", "p50", "p99", "pairs"} {
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
		if r.Error != "" || r.Weaker != "" || ours(r) || strings.HasPrefix(r.Driver, yardstick) || of(&r.Figures) == 0 {
			continue
		}
		ratio := of(&first.Figures) / of(&r.Figures)
		if more && ratio < 0.995 || !more && ratio > 1.005 {
			all = append(all, fmt.Sprintf("%s %.2f", r.Driver, ratio))
		}
	}
	return all
}
