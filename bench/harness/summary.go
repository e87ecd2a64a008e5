package harness

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// writeSummary writes what was measured as Markdown, ready to be pasted.
func writeSummary(name string, parts []part) error {
	var b bytes.Buffer
	summarize(&b, parts)
	return os.WriteFile(name, b.Bytes(), 0o644)
}

// summarize writes every part, what they have in common first.
func summarize(w io.Writer, parts []part) {
	var first *part
	var took time.Duration
	for i := range parts {
		took += parts[i].took
		if first == nil && parts[i].run != nil {
			first = &parts[i]
		}
	}
	fmt.Fprint(w, "# What was measured\n\n")
	if first == nil {
		fmt.Fprint(w, "Nothing.\n\n")
	} else {
		run := first.run
		fmt.Fprintf(w, "* machine: %s\n* servers: %s, unless a section says otherwise\n* commit %s, %s\n", run.Machine, run.serverNames(), run.Commit, run.Date.Format(time.DateOnly))
		fmt.Fprintf(w, "* each figure: %s; the drivers took turns; it took %v\n", run.Method(), took.Round(time.Second))
		fmt.Fprint(w, "* in parentheses: the lowest and the highest round\n\n")
	}
	for _, p := range parts {
		p.summarize(w, first)
	}
	if first == nil {
		return
	}
	fmt.Fprint(w, "## Before you compare\n\n")
	for _, r := range weakest(parts) {
		fmt.Fprintf(w, "* %s: %s, a weaker guarantee, shown for scale\n", r.name(), r.Weaker)
	}
	if len(first.run.Notes) == 0 {
		fmt.Fprint(w, "* floor is no lock client but one thread that does only the unavoidable\n")
	}
	for _, note := range first.run.Notes {
		fmt.Fprintf(w, "* %s\n", note)
	}
}

// weakest are the rows that promise less, each driver's once.
func weakest(parts []part) []Row {
	var all []Row
	for _, p := range parts {
		if p.run == nil {
			continue
		}
		for _, g := range p.run.Groups {
			for _, r := range g.Rows {
				if r.Weaker != "" && !slices.ContainsFunc(all, func(o Row) bool { return o.Driver == r.Driver }) {
					all = append(all, r)
				}
			}
		}
	}
	return all
}

// serverNames are the servers without their addresses.
func (r *Run) serverNames() string {
	names, _, _ := strings.Cut(r.Servers, " (")
	return names
}

// summarize writes the tables of one section.
func (p part) summarize(w io.Writer, first *part) {
	fmt.Fprintf(w, "## %s\n\n`%s`", p.Title, p.Section.Args)
	if p.run != nil {
		if names := p.run.serverNames(); names != first.run.serverNames() {
			fmt.Fprintf(w, " on %s", names)
		}
		if method := p.run.Method(); method != first.run.Method() && len(p.run.Groups) > 0 {
			fmt.Fprintf(w, "; %s", method)
		}
	}
	fmt.Fprint(w, "\n\n")
	switch {
	case p.skipped():
		fmt.Fprintf(w, "Skipped: %s\n\n", oneLine(p.err.Error()))
	case p.err != nil:
		fmt.Fprintf(w, "Not complete: %s\n\n", oneLine(p.err.Error()))
	}
	if p.run == nil {
		return
	}
	if len(p.run.Groups) == 1 {
		p.oneCell(w, p.run.Groups[0])
	} else if len(p.run.Groups) > 1 {
		for _, name := range p.Shows {
			p.table(w, measures[name])
		}
	}
	p.missing(w)
	writeLosses(w, p.run.Groups)
	writeNotes(w, p.run.Client)
}

// table writes one measure: a row a driver, a column a cell.
func (p part) table(w io.Writer, m measure) {
	groups := p.run.Groups
	axis, labels := axes(groups)
	fmt.Fprintf(w, "%s, by %s:\n\n| driver |", m.heading, axis)
	for _, label := range labels {
		fmt.Fprintf(w, " %s |", label)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(labels)))
	if m.ping != nil {
		fmt.Fprint(w, "| *a PING* |")
		for _, g := range groups {
			fmt.Fprintf(w, " %s |", m.ping(anyResult(g)))
		}
		fmt.Fprintln(w)
	}
	for i, row := range groups[0].Rows {
		fmt.Fprintf(w, "| %s |", row.marked())
		for _, g := range groups {
			fmt.Fprintf(w, " %s |", m.cell(g, g.Rows[i]))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}

// oneCell writes the only cell of a section: a row a driver, a column a measure.
func (p part) oneCell(w io.Writer, g Group) {
	fmt.Fprint(w, "| driver |")
	for _, name := range p.Shows {
		fmt.Fprintf(w, " %s |", measures[name].heading)
	}
	fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(p.Shows)))
	for _, row := range g.Rows {
		fmt.Fprintf(w, "| %s |", row.marked())
		for _, name := range p.Shows {
			fmt.Fprintf(w, " %s |", measures[name].cell(g, row))
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintln(w)
}

// missing says why there are no figures where there are none, and which errors
// there were: the reasons once, however many cells have them.
func (p part) missing(w io.Writer) {
	var order []string
	where := map[string][]string{}
	add := func(what, label string) {
		if where[what] == nil {
			order = append(order, what)
		}
		where[what] = append(where[what], label)
	}
	_, labels := axes(p.run.Groups)
	for i, g := range p.run.Groups {
		for _, r := range g.Rows {
			switch {
			case r.Err != nil:
				add(fmt.Sprintf("no figures of %s: %s", r.Driver, reason(r)), labels[i])
			case r.Result.Errors > 0:
				add(fmt.Sprintf("errors of %s, of which the first: %s", r.Driver, oneLine(cmp.Or(r.Result.FirstError, "unknown"))),
					fmt.Sprintf("%s: %d", labels[i], r.Result.Errors))
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

// reason is why a driver has no figures, without its name.
func reason(r Row) string {
	text := oneLine(strings.TrimPrefix(r.Err.Error(), r.Driver+": "))
	if errors.Is(r.Err, ErrUnsupported) {
		text = strings.TrimPrefix(text, "open: ")
	}
	return text
}

// writeNotes writes what is no cell, part after part.
func writeNotes(w io.Writer, notes []Note) {
	for len(notes) > 0 {
		part := notes
		if n := slices.IndexFunc(notes, func(n Note) bool { return n.Part != notes[0].Part }); n >= 0 {
			part = notes[:n]
		}
		notes = notes[len(part):]
		fmt.Fprintf(w, "%s:\n\n", part[0].Part)
		if !alike(part) {
			for _, n := range part {
				fmt.Fprintf(w, "* %s: %v\n", n.What, n)
			}
			fmt.Fprintln(w)
			continue
		}
		fmt.Fprint(w, "| |")
		for _, f := range part[0].Figures {
			fmt.Fprintf(w, " %s |", f.Unit)
		}
		fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("---|", len(part[0].Figures)))
		for _, n := range part {
			fmt.Fprintf(w, "| %s |", n.What)
			for _, f := range n.Figures {
				fmt.Fprintf(w, " %s |", digits(f.Value))
			}
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w)
	}
}

// alike tells whether notes can stand in one table.
func alike(notes []Note) bool {
	for _, n := range notes {
		if !slices.EqualFunc(n.Figures, notes[0].Figures, func(a, b Figure) bool { return a.Unit == b.Unit }) {
			return false
		}
	}
	return len(notes) > 1
}

// marked is a row's name, ours in bold.
func (r Row) marked() string {
	if strings.HasPrefix(r.Driver, "redlock") {
		return "**" + r.Driver + "**"
	}
	return r.name()
}

// anyResult is one of the group, for what they have in common.
func anyResult(g Group) Result {
	for _, r := range g.Rows {
		if r.Err == nil {
			return r.Result
		}
	}
	return Result{}
}

// axes says what the groups differ in, and each one's place.
func axes(groups []Group) (axis string, labels []string) {
	var names []string
	labels = make([]string, len(groups))
	for _, a := range []struct {
		name string
		of   func(Cell) string
	}{
		{"scenario", func(c Cell) string { return string(c.Scenario) }},
		{"nodes", func(c Cell) string { return fmt.Sprint(c.Nodes) }},
		{"round trip added", func(c Cell) string { return c.RTT.String() }},
		{"first node", func(c Cell) string { return string(c.Fault) }},
		{"bytes of a key", func(c Cell) string { return fmt.Sprint(c.KeyLen) }},
		{"GOMAXPROCS", func(c Cell) string { return fmt.Sprint(c.Procs) }},
		{"goroutines", func(c Cell) string { return fmt.Sprint(c.Concurrency) }},
	} {
		if !slices.ContainsFunc(groups, func(g Group) bool { return a.of(g.Cell) != a.of(groups[0].Cell) }) {
			continue
		}
		names = append(names, a.name)
		for i, g := range groups {
			if labels[i] != "" {
				labels[i] += " / "
			}
			labels[i] += a.of(g.Cell)
		}
	}
	for i, g := range groups {
		if labels[i] == "" { // the only one
			labels[i] = fmt.Sprint(g.Cell.Concurrency, " goroutines")
		}
	}
	return strings.Join(names, " and "), labels
}
