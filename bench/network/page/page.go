// Package page makes the tables of the README from the verdicts of its runs.
package page

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/redlock-go/redlock/bench/network/checker"
	"github.com/redlock-go/redlock/bench/network/history"
)

// Render writes the tables of the runs in a folder.
func Render(out io.Writer, dir string) error {
	all, err := checker.Load(dir)
	if err != nil {
		return err
	} else if len(all) == 0 {
		return fmt.Errorf("no runs in %s", dir)
	}
	slices.SortFunc(all, func(a, b *checker.Verdict) int { return cmp.Compare(a.Setup.Name, b.Setup.Name) })
	var own, compared, peer []*checker.Verdict
	for _, v := range all {
		switch {
		case v.Setup.Library == history.Redsync:
			peer = append(peer, v)
		case v.Setup.Library != history.Ours: // controls
		case v.Setup.Compared:
			compared = append(compared, v)
		default:
			own = append(own, v)
		}
	}
	w := &writer{}
	w.versions(slices.Concat(compared, peer, own))
	groups := []group{{"redlock, every workload", own}, {"redlock, compared", compared}, {"redsync, compared", peer}}
	w.sums(groups)
	w.faults(compared, peer)
	w.attempts(groups)
	w.runs(all)
	_, err = out.Write(w.Bytes())
	return err
}

// group is a row of runs.
type group struct {
	name string
	runs []*checker.Verdict
}

// writer has the page.
type writer struct{ bytes.Buffer }

// row writes the cells of a table.
func (w *writer) row(cells ...any) {
	for _, c := range cells {
		fmt.Fprintf(w, "| %v ", c)
	}
	w.WriteString("|\n")
}

// head writes the head of a table.
func (w *writer) head(names ...string) {
	fmt.Fprintf(w, "\n| %s |\n|%s\n", strings.Join(names, " | "), strings.Repeat("---|", len(names)))
}

func (w *writer) versions(all []*checker.Verdict) {
	servers, commits, peers, seeds := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, v := range all {
		servers[v.Setup.Server], commits[v.Setup.Commit], peers[v.Setup.Version] = true, true, true
		seeds[fmt.Sprint(v.Setup.Seed)] = true
	}
	names := func(set map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(set)), ", ") }
	fmt.Fprintf(w, "%d runs of %s with redsync %s, beside %s. Seeds: %s.\n", len(all), names(commits), names(peers), names(servers), names(seeds))
}

// rules are the rows of sums: what a run may break.
var rules = []struct {
	name string
	of   []string
}{
	{"overlaps", []string{checker.Overlap}}, {"tokens out of order", []string{checker.Token}}, {"holders refused", []string{checker.Refused}},
	{"calls late", []string{checker.Late}}, {"false taken", []string{checker.FalseTaken}}, {"false not held", []string{checker.FalseLoss}},
	{"keys kept", []string{checker.KeyKept, checker.NoExpiry}}, {"kept locks lost", []string{checker.Lost}}, {"unavailable", []string{checker.Unavailable}},
	{"early, unbacked, strayed, misnamed", []string{checker.Early, checker.Unbacked, checker.Strayed, checker.Misnamed}},
	{"noise", []string{checker.Noise}}, {"unclean ends", []string{checker.Unclean}},
}

// sums are what each group of runs has broken: a column for each.
func (w *writer) sums(groups []group) {
	names, runs, counts, broken := []string{""}, []any{"runs"}, make([]map[string]int, len(groups)), make([]map[string]int, len(groups))
	for i, g := range groups {
		names, runs = append(names, g.name), append(runs, len(g.runs))
		counts[i], broken[i] = map[string]int{}, map[string]int{}
		for _, v := range g.runs {
			for k, n := range v.Counts {
				counts[i][k] += n
			}
			for k, n := range v.Broken() {
				broken[i][k] += n
			}
		}
	}
	w.head(names...)
	w.row(runs...)
	line := func(name string, in []map[string]int, kinds ...string) {
		cells := []any{name}
		for i := range groups {
			n := 0
			for _, k := range kinds {
				n += in[i][k]
			}
			cells = append(cells, n)
		}
		w.row(cells...)
	}
	line("faults", counts, "faults")
	line("grants", counts, "grants")
	for _, r := range rules {
		line(r.name, broken, r.of...)
	}
}

// faults are the figures of each kind of fault, ours beside the peer's.
func (w *writer) faults(ours, peer []*checker.Verdict) {
	w.head("fault", "n", "overlaps", "without a grant from its beginning", "to the first grant after its end", "a contended key free and wanted", "false errors", "connections")
	a, b := sum(ours), sum(peer)
	for _, kind := range slices.Sorted(maps.Keys(a)) {
		if x, y := a[kind], b[kind]; y != nil {
			w.row(kind, both(x.n, y.n), both(x.Overlaps, y.Overlaps), both(checker.Three(x.Without), checker.Three(y.Without)), both(checker.Three(x.After), checker.Three(y.After)),
				both(checker.Three(x.Wanted), checker.Three(y.Wanted)), both(x.False, y.False), both(x.Dials/int64(x.n), y.Dials/int64(y.n)))
		}
	}
}

// total is of all faults of a kind.
type total struct {
	checker.Figures
	n int
}

func sum(runs []*checker.Verdict) map[string]*total {
	kinds := map[string]*total{}
	for _, v := range runs {
		for _, f := range v.Faulty {
			t := kinds[f.Fault]
			if t == nil {
				t = &total{}
				kinds[f.Fault] = t
			}
			t.n++
			t.Without, t.After, t.Wanted = append(t.Without, f.Without...), append(t.After, f.After...), append(t.Wanted, f.Wanted...)
			t.Overlaps, t.False, t.Dials = t.Overlaps+f.Overlaps, t.False+f.False, t.Dials+f.Dials
		}
	}
	return kinds
}

func both(ours, peer any) string { return fmt.Sprintf("%v<br>%v", ours, peer) }

// attempts compare attempts on free keys while a minority is at fault with those without a fault, in all runs of a group.
func (w *writer) attempts(groups []group) {
	w.head("an attempt on a free key, ms", "n, no fault", "p50", "p99", "n, a minority faulty", "p50", "p99", "ratio of p99")
	for _, g := range groups {
		var healthy, faulty []float64
		for _, v := range g.runs {
			healthy, faulty = append(healthy, v.Attempts.Healthy...), append(faulty, v.Attempts.Faulty...)
		}
		q := func(list []float64, q float64) string { return fmt.Sprintf("%.2f", checker.Quantile(list, q)) }
		w.row(g.name, len(healthy), q(healthy, .5), q(healthy, .99), len(faulty), q(faulty, .5), q(faulty, .99),
			fmt.Sprintf("%.2f", checker.Quantile(faulty, .99)/checker.Quantile(healthy, .99)))
	}
}

// runs are all runs, one a line.
func (w *writer) runs(all []*checker.Verdict) {
	w.head("run", "faults", "grants", "violations", "beyond a context, ms at most", "after the heal: first grant, ms", "a key free and wanted, ms", "connections", "log lines of a client")
	for _, v := range all {
		var broken []string
		for _, rule := range slices.Sorted(maps.Keys(v.Broken())) {
			broken = append(broken, fmt.Sprintf("%s %d", rule, v.Broken()[rule]))
		}
		w.row(v.Setup.Name, v.Counts["faults"], v.Counts["grants"], cmp.Or(strings.Join(broken, ", "), "–"), fmt.Sprintf("%.0f", v.Figures["call beyond its context, ms"]),
			fmt.Sprintf("%.0f", v.Figures["first grant after the heal, ms"]), fmt.Sprintf("%.0f", v.Figures["free and wanted after the heal, ms"]), v.Counts["dials"], v.Figures["log lines of a client"])
	}
}
