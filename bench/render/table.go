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

// Head prints what the tables below it depend on. A node that was away is a
// line of its own.
func Head(w io.Writer, h result.Head) {
	if h.Title != "" {
		fmt.Fprintf(w, "\n== %s: %s\n", h.Section, h.Title)
	}
	fmt.Fprintf(w, "machine  %s\nservers  %s\n", h.Machine, cmp.Or(servers(h), "none"))
	for _, s := range h.Servers {
		if s.Down != "" {
			fmt.Fprintf(w, "         %s is down: %s\n", s.Addr, oneLine(s.Down))
		}
	}
	fmt.Fprintf(w, "commit   %s, %s\ncells    %s\n", h.Commit, h.Date.Format(time.DateTime), method(h))
}

// method says how a figure has come about.
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
		if counts[what]++; counts[what] == 1 {
			order = append(order, what)
		}
	}
	for i, what := range order {
		order[i] = fmt.Sprintf("%d × %s", counts[what], what)
	}
	return strings.Join(order, ", ")
}

// Title names a cell.
func Title(c result.Cell) string { return describe(c, "") }

// describe names a cell by all that it is but one dimension.
func describe(c result.Cell, but string) string {
	parts := []string{string(c.Scenario)}
	add := func(name string, is bool, format string, args ...any) {
		if name != but && is {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add("concurrency", true, "concurrency %d", c.Concurrency)
	add("nodes", true, "%d nodes", c.Nodes)
	add("rtt", c.RTT > 0, "round trip +%v", c.RTT)
	add("jitter", c.Jitter > 0, "jitter %v", c.Jitter)
	add("fault", c.Fault != result.NoFault && !c.Fault.OfClients(), "node 1 %s", fault(c.Fault))
	add("fault", c.Fault.OfClients(), "%s", c.Fault)
	add("keylen", c.KeyLen != 24, "keys of %d bytes", c.KeyLen)
	add("procs", c.Procs > 0, "GOMAXPROCS %d", c.Procs)
	add("processes", c.Processes > 0, "%d processes", c.Processes)
	add("keys", c.Keys > 1, "%d keys", c.Keys)
	add("hold", c.Hold > 0, "hold %v", c.Hold)
	add("once", c.Once, "one turn each")
	add("ttl", c.Fault.OfClients(), "TTL %v", c.TTL)
	return strings.Join(parts, ", ")
}

// fault completes a sentence that begins with the node.
func fault(f result.Fault) string {
	switch f {
	case result.NoFault:
		return "well"
	case result.Slow:
		return "slow (+20ms)"
	case result.BlackHole:
		return "black-holed"
	case result.Back:
		return "dies and comes back"
	}
	return string(f)
}

// column is one of a table.
type column struct {
	Heading string
	Show    func(*result.Row) string
	Span    func(*result.Row) string // the lowest and the highest round, or nil
}

// columns are those that have something to say of a group.
func columns(g *result.Group) []column {
	rounds := slices.ContainsFunc(g.Rows, func(r *result.Row) bool { return r.Error == "" && len(r.Rounds) > 1 })
	held := slices.ContainsFunc(g.Rows, func(r *result.Row) bool { return r.Descriptors > 0 })
	all := []column{{"driver", name, nil}}
	for _, m := range measures {
		switch {
		case m.short == "",
			!m.says(g),
			!held && (m.name == "descriptors" || m.name == "heap" || m.name == "rss"):
			continue
		}
		c := column{m.short, func(r *result.Row) string { return m.show(g, r) }, nil}
		if rounds && m.ranged {
			c.Span = m.span
		}
		all = append(all, c)
	}
	return all
}

// ping says how long a PING has taken, if one was answered.
func ping(g *result.Group) string {
	for _, r := range g.Rows {
		if r.PingP50 > 0 {
			return fmt.Sprintf("a PING takes %s µs, p99 %s µs", digits(r.PingP50), digits(r.PingP99))
		}
	}
	return ""
}

// Table prints the rows of one cell.
func Table(w io.Writer, g *result.Group) {
	fmt.Fprintf(w, "\n%s", Title(g.Cell))
	if said := ping(g); said != "" {
		fmt.Fprintf(w, "; %s", said)
	}
	fmt.Fprintln(w)
	shown := columns(g)
	if pairs := shown[1]; pairs.Span != nil { // a page has room for all, a terminal for one
		shown = slices.Insert(shown, 2, column{"min–max", pairs.Span, nil})
	}
	width := make([]int, len(shown))
	for i, c := range shown {
		width[i] = utf8.RuneCountInString(c.Heading)
		for _, r := range g.Rows {
			width[i] = max(width[i], utf8.RuneCountInString(c.Show(r)))
		}
	}
	line := func(cell func(column) string) {
		var b strings.Builder
		fmt.Fprintf(&b, "%-*s", width[0], cell(shown[0]))
		for i, c := range shown[1:] {
			fmt.Fprintf(&b, "  %*s", width[i+1], cell(c))
		}
		fmt.Fprintln(w, b.String())
	}
	line(func(c column) string { return c.Heading })
	for _, r := range g.Rows {
		switch {
		case r.Error != "":
			fmt.Fprintf(w, "%-*s  %s\n", width[0], name(r), reason(r))
			continue
		default:
			line(func(c column) string { return c.Show(r) })
		}
		if r.Errors > 0 {
			fmt.Fprintf(w, "%-*s  the first error: %s\n", width[0], "", oneLine(cmp.Or(r.FirstError, "unknown")))
		}
	}
}

// Note prints a note.
func Note(w io.Writer, n result.Note) {
	fmt.Fprintf(w, "%s, %s: %s\n", n.Part, n.What, figuresOf(n))
}

// figuresOf is the figures of a note in one line.
func figuresOf(n result.Note) string {
	parts := make([]string, len(n.Figures))
	for i, f := range n.Figures {
		parts[i] = digits(f.Value) + " " + f.Unit
	}
	return strings.Join(parts, ", ")
}

// Notes prints what the figures have to be read with.
func Notes(w io.Writer, run *result.Run) {
	fmt.Fprintln(w)
	for _, note := range notes([]*result.Run{run}) {
		fmt.Fprintf(w, "- %s\n", note)
	}
}

// notes are those of all runs, once each, and which drivers promise less.
func notes(runs []*result.Run) []string {
	var weak, said []string
	for _, run := range runs {
		for _, g := range run.Groups {
			for _, r := range g.Rows {
				if r.Weaker != "" {
					weak = append(weak, fmt.Sprintf("%s: %s, a weaker guarantee, shown for scale", name(r), r.Weaker))
				}
			}
		}
		said = append(said, run.Head.Notes...)
	}
	var once []string
	for _, note := range append(weak, said...) {
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

// ours tells whether a driver is this module's.
func ours(r *result.Row) bool { return strings.HasPrefix(r.Driver, "redlock") }

// reason is why a driver has no figures, without its name.
func reason(r *result.Row) string {
	text := oneLine(strings.TrimPrefix(r.Error, strings.TrimSuffix(r.Driver, label(r.Driver))+": "))
	if r.Lacks {
		text = strings.TrimPrefix(text, "open: ")
	}
	return text
}

// oneLine keeps an error that a library has written over several lines, one
// for each node, from tearing the table apart.
func oneLine(text string) string {
	const enough = 160
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > enough {
		text = string(runes[:enough]) + "…"
	}
	return text
}
