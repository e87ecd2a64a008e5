package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// fill brings the matrix up to date, as far as time allows.
func (o options) fill(t tree, all, defects []defect) error {
	w := &work{tree: t, matrix: matrix{hashes: map[string]string{}, reached: map[cell]bool{}, kills: map[cell]bool{}}}
	w.end = time.Now().Add(o.limit)
	if err := w.prepare(o, all); err != nil {
		return err
	}
	w.mutants = o.mutants(t, w.open(defects))
	w.do(o, func(m *mutant) {
		w.rest(m, quick, func(f *function) bool { return slices.Contains(w.owners[m.name], f.dir) && !w.slow[f.dir] })
	})
	slices.SortStableFunc(w.mutants, func(a, b mutant) int { return w.reaching(a.name) - w.reaching(b.name) })
	w.do(o, func(m *mutant) { w.rest(m, quick, w.isIdle) })
	w.do(o, func(m *mutant) { w.rest(m, quick, func(f *function) bool { return !w.slow[f.dir] }) })
	w.do(o, w.named)
	return w.save(t)
}

// quick is how long the functions of a quick package take, one after the other, and how long functions
// of one package are run on a defect.
const quick = 40.0

// work is the filling of a matrix.
type work struct {
	tree
	mutants []mutant
	owners  map[string][]string // the packages that a defect is in
	slow    map[string]bool     // packages
	end     time.Time
	saved   time.Time
	mu      sync.Mutex // guards the matrix
	matrix
}

// prepare finds out what is reached and known.
func (w *work) prepare(o options, defects []defect) (err error) {
	if w.functions, err = w.testFunctions(); err != nil {
		return err
	}
	edits := map[string][]edit{}
	w.owners = map[string][]string{}
	var covered []string
	for _, d := range defects {
		texts := []string{fmt.Sprint(d.hunks)}
		for _, h := range d.hunks {
			e, err := w.apply(h)
			if err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
			dir, _ := filepath.Rel(w.root, filepath.Dir(e.file))
			edits[d.name], texts = append(edits[d.name], e), append(texts, e.declaration)
			w.owners[d.name], covered = append(w.owners[d.name], dir), append(covered, dir)
		}
		w.hashes[d.name] = hash(texts...)
		for _, t := range d.tests {
			for _, f := range w.of(t) {
				f.listed++
			}
		}
	}
	slices.Sort(covered)
	if err := o.measureAll(w.tree, w.functions, slices.Compact(covered)); err != nil {
		return err
	}
	seconds := map[string]float64{}
	w.slow = map[string]bool{}
	slices.SortStableFunc(w.functions, func(a, b *function) int { return cmp.Compare(a.Seconds, b.Seconds) })
	for _, f := range w.functions {
		seconds[f.dir] += f.Seconds
		w.slow[f.dir] = seconds[f.dir] > quick
		for name, edits := range edits {
			for _, e := range edits {
				if f.reaches(w.tree, e) {
					w.reached[cell{name, f}] = true
				}
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(w.root, theMatrix))
	if err == nil {
		w.load(string(text))
	} else if os.IsNotExist(err) {
		err = nil
	}
	return err
}

// open are the defects with something to run, with those tests of the list that have not been run.
func (w *work) open(defects []defect) (left []defect) {
	for _, d := range defects {
		d.tests = slices.DeleteFunc(slices.Clone(d.tests), func(t test) bool {
			return slices.ContainsFunc(w.of(t), func(f *function) bool { return w.hasRun(cell{d.name, f}) })
		})
		isOpen := func(f *function) bool { return !w.known(cell{d.name, f}) }
		if len(d.tests) > 0 || slices.ContainsFunc(w.functions, isOpen) {
			left = append(left, d)
		}
	}
	return left
}

// do does a thing with every mutant until time is over.
func (w *work) do(o options, thing func(*mutant)) {
	indices := make([]int, len(w.mutants))
	for i := range indices {
		indices[i] = i
	}
	each(o.jobs, indices, func(i int) {
		if m := &w.mutants[i]; m.fault.state == "" && time.Now().Before(w.end) {
			thing(m)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if time.Since(w.saved) > time.Minute {
			w.saved = time.Now()
			if err := w.save(w.tree); err != nil {
				fmt.Println(err)
			}
		}
	})
	_, _, unknown := w.sum()
	fmt.Printf("%s left; %d cells not run\n", time.Until(w.end).Round(time.Second), unknown)
}

// named runs the tests of the list that have no cell yet.
func (w *work) named(m *mutant) {
	for _, t := range m.tests {
		o, dir, err := m.runTest(t, m.limit)
		if err != nil {
			return
		}
		// What is run in part may kill, but says nothing of the rest.
		w.take(m, dir, o, strings.Contains(t.String(), "/"))
	}
}

// of are the functions of a test of the list.
func (w *work) of(t test) (all []*function) {
	dir, _ := w.dirOf(t.pkg)
	pattern := "."
	if len(t.flags) > 1 {
		pattern, _, _ = strings.Cut(t.flags[1], "/")
	}
	for _, f := range w.functions {
		if matches, _ := regexp.MatchString(pattern, f.name); matches && f.dir == dir {
			all = append(all, f)
		}
	}
	return all
}

// take takes an outcome over, and returns what has a result.
func (w *work) take(m *mutant, dir string, o outcome, inPart bool) (names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	killers := o.killers()
	for _, f := range w.functions {
		if f.dir != dir {
			continue
		}
		kills := slices.Contains(killers, f.name)
		if kills || o.results[f.name] == "PASS" && !inPart {
			w.kills[cell{m.name, f}] = kills || w.kills[cell{m.name, f}]
			names = append(names, f.name)
		}
	}
	return names
}

// isIdle reports whether a function kills nothing yet.
func (w *work) isIdle(f *function) bool {
	_, kills, _ := w.count(f)
	return kills == 0 && f.listed == 0
}

// reaching counts the functions that reach a defect.
func (w *work) reaching(defect string) (n int) {
	for _, f := range w.functions {
		if w.reached[cell{defect, f}] {
			n++
		}
	}
	return n
}

// rest runs what is wanted and not known, of each package for at most some seconds.
func (w *work) rest(m *mutant, atMost float64, wanted func(*function) bool) {
	w.mu.Lock()
	packages := w.packages()
	w.mu.Unlock()
	for dir, functions := range packages {
		seconds := 0.0
		var names []string
		w.mu.Lock()
		for _, f := range functions {
			if wanted(f) && !w.known(cell{m.name, f}) && seconds+f.Seconds <= atMost {
				names = append(names, f.name)
				seconds += f.Seconds
			}
		}
		w.mu.Unlock()
		if len(names) > 0 && time.Now().Before(w.end) {
			w.runAll(m, dir, names, seconds)
		}
	}
}

// runAll runs functions of a package; after a panic, or a hang, it goes on with the rest.
func (w *work) runAll(m *mutant, dir string, names []string, seconds float64) {
	binary, err := m.build(dir)
	if err != nil {
		fmt.Println(m.name, err)
		return
	}
	if !slices.ContainsFunc(m.tests, func(t test) bool { d, _ := m.dirOf(t.pkg); return d == dir }) {
		defer os.Remove(binary)
	}
	limit := 15*time.Second + 4*time.Duration(seconds*float64(time.Second))
	for hangs, runs := 0, 0; len(names) > 0 && hangs < 2 && runs < 10; runs++ {
		o := m.run(binary, dir, limit, "-test.run=^("+strings.Join(names, "|")+")$")
		w.confirm(dir, &o, func(names string) outcome { return m.run(binary, dir, limit, "-test.run=^("+names+")$") })
		done := w.take(m, dir, o, false)
		if len(done) == 0 || !o.failed {
			return
		}
		if o.hung {
			hangs++
		}
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(done, name) })
	}
}

// confirm repeats what fails of functions that have killed nothing yet: on a busy machine a test may
// fail for want of time, and the first kill is the one that matters.
func (w *work) confirm(dir string, o *outcome, run func(names string) outcome) {
	w.mu.Lock()
	killers := o.killers()
	var first []string
	for _, f := range w.functions {
		if f.dir == dir && slices.Contains(killers, f.name) && w.isIdle(f) {
			first = append(first, f.name)
		}
	}
	w.mu.Unlock()
	if len(first) == 0 {
		return
	}
	for name, result := range run(strings.Join(first, "|")).results {
		if result == "PASS" {
			o.results[name] = result
		}
	}
}
