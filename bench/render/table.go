package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/redlock-go/redlock/bench/result"
)

// Head prints what the tables below it depend on. A node that was away has a line of its
// own.
func Head(w io.Writer, h result.Head) {
	if h.Title != "" {
		fmt.Fprintf(w, "\n== %s: %s\n", h.Section, h.Title)
	}
	fmt.Fprintf(w, "machine  %s\nplace    %s\nservers  %s\n", h.Machine, place(h), cmp.Or(servers(h), "none"))
	for _, s := range h.Servers {
		if s.Down != "" {
			fmt.Fprintf(w, "         %s is down: %s\n", s.Addr, oneLine(s.Down))
		}
	}
	fmt.Fprintf(w, "commit   %s, %s\ncells    %s\n", h.Commit, h.Date.Format(time.DateTime), method(h))
	if slices.Contains(h.Drivers, yardstick) {
		fmt.Fprintf(w, "floor    %s\n", Yardstick)
	}
}

// place says who had which processors. Results without it are of a time when all shared them.
func place(h result.Head) string { return cmp.Or(h.Place, "together") }

// method describes how a figure was made.
func method(h result.Head) string { return fmt.Sprintf("medians of %d, each %s", h.Rounds, h.Method) }

// servers counts the nodes of each kind.
func servers(h result.Head) string {
	counts := map[string]int{}
	var order []string
	for _, s := range h.Servers {
		what := s.What
		if s.Down != "" {
			what = "down"
		}
		counts[what]++
		if counts[what] == 1 {
			order = append(order, what)
		}
	}
	for i, what := range order {
		order[i] = fmt.Sprintf("%d × %s", counts[what], what)
	}
	return strings.Join(order, ", ")
}

// Table prints the rows of one cell.
func Table(w io.Writer, g *result.Group) {
	fmt.Fprintf(w, "\n%s", Title(g.Cell))
	if i := slices.IndexFunc(g.Rows, func(r *result.Row) bool { return r.PingP50 > 0 }); i >= 0 {
		fmt.Fprintf(w, "; a PING takes %s µs, p99 %s µs", digits(g.Rows[i].PingP50), digits(g.Rows[i].PingP99))
	}
	fmt.Fprintln(w)
	table := [][]string{{"driver"}} // lines of cells
	for _, r := range g.Rows {
		table = append(table, []string{name(r) + disturbed(r) + unfair(r)})
	}
	add := func(heading string, show func(*result.Row) string) {
		table[0] = append(table[0], heading)
		for i, r := range g.Rows {
			table[i+1] = append(table[i+1], show(r))
		}
	}
	rounds := slices.ContainsFunc(g.Rows, func(r *result.Row) bool { return r.Error == "" && len(r.Rounds) > 1 })
	for _, m := range measures {
		if m.short == "" || !m.has(g) {
			continue
		}
		add(m.short, func(r *result.Row) string { return m.show(g, r) })
		if m.name == "pairs" && rounds { // the terminal has room for one range, the summary for all
			add("min–max", m.span)
		}
	}
	width := make([]int, len(table[0]))
	for _, line := range table {
		for i, text := range line {
			width[i] = max(width[i], utf8.RuneCountInString(text))
		}
	}
	for i, line := range table {
		fmt.Fprintf(w, "%-*s", width[0], line[0])
		if i > 0 && g.Rows[i-1].Error != "" {
			fmt.Fprintf(w, "  %s\n", reason(g.Rows[i-1]))
			continue
		}
		for j, text := range line[1:] {
			fmt.Fprintf(w, "  %*s", width[j+1], text)
		}
		fmt.Fprintln(w)
		if i > 0 && g.Rows[i-1].Errors > 0 {
			fmt.Fprintf(w, "%-*s  the first error: %s\n", width[0], "", oneLine(cmp.Or(g.Rows[i-1].FirstError, "unknown")))
		}
	}
}

// Notes prints what a reader of the figures has to know.
func Notes(w io.Writer, run *result.Run) {
	fmt.Fprintln(w)
	for _, note := range notes([]*result.Run{run}) {
		fmt.Fprintf(w, "- %s\n", note)
	}
}

// notes are those of all runs, once each, and the drivers with a weaker guarantee.
func notes(runs []*result.Run) []string {
	var weak, other []string
	for _, run := range runs {
		for _, g := range run.Groups {
			for _, r := range g.Rows {
				if disturbed(r) != "" {
					other = append(other, fmt.Sprintf("%s !, %s: other programs used %.0f %% of the processors; measure it again on a quiet machine", r.Driver, Title(g.Cell), 100*r.Others))
				}
				if unfair(r) != "" {
					other = append(other, fmt.Sprintf("%s ~, %s: a process has had %.2f of its fair share", r.Driver, Title(g.Cell), r.ProcessLeast))
				}
				if r.Weaker != "" {
					weak = append(weak, fmt.Sprintf("%s: %s, a weaker guarantee, shown for scale", name(r), r.Weaker))
				}
			}
		}
		other = append(other, run.Head.Notes...)
	}
	var once []string
	for _, note := range append(weak, other...) {
		if !slices.Contains(once, note) {
			once = append(once, note)
		}
	}
	return once
}

// name marks a driver that promises less than the others.
func name(r *result.Row) string {
	if r.Weaker != "" {
		return r.Driver + " *"
	}
	return r.Driver
}

// mostOthers is the share of the processors above which other programs disturb.
const mostOthers = .1

// disturbed marks a row that was measured beside other programs.
func disturbed(r *result.Row) string {
	if r.Others > mostOthers {
		return " !"
	}
	return ""
}

// leastShare is the part of a fair share below which a process is starved: it waits, and its figures are those of the
// others.
const leastShare = .5

// unfair marks a row where a process was starved.
func unfair(r *result.Row) string {
	if r.ProcessMost > 0 && r.ProcessLeast < leastShare {
		return " ~"
	}
	return ""
}

// ours reports whether a driver is one of this module.
func ours(r *result.Row) bool { return strings.HasPrefix(r.Driver, "redlock") }

// reason is why a driver has no figures, without its name.
func reason(r *result.Row) string {
	return oneLine(strings.TrimPrefix(r.Error, strings.TrimSuffix(r.Driver, label(r.Driver))+": "))
}

// oneLine shortens an error, which a library may have written over several lines, to what
// fits a table.
func oneLine(text string) string {
	const enough = 160
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > enough {
		text = string(runes[:enough]) + "…"
	}
	return text
}
