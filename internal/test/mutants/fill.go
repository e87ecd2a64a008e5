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
	w := &work{tree: t, begun: map[string]bool{}, busy: map[string]bool{}, matrix: matrix{hashes: map[string]string{}, reached: map[cell]bool{}, kills: map[cell]bool{}}}
	w.end = time.Now().Add(o.limit)
	if err := w.prepare(o, all); err != nil {
		return err
	}
	w.mutants = o.mutants(t, w.open(defects))
	var wg sync.WaitGroup
	for range max(1, o.jobs) {
		wg.Go(func() {
			for j := w.next(); j != nil; j = w.next() {
				w.runAll(j)
			}
		})
	}
	wg.Wait()
	each(o.jobs, w.mutants, w.named)
	return w.save(t)
}

// work is the filling of a matrix.
type work struct {
	tree
	mutants []mutant
	end     time.Time
	saved   time.Time
	mu      sync.Mutex      // guards the matrix
	begun   map[string]bool // jobs, by their names
	busy    map[string]bool // mutants
	matrix
}

// job is the functions of a package that are not known to kill a defect or not.
type job struct {
	*mutant
	dir       string
	functions []*function
	seconds   float64 // what it takes if nothing fails
}

// prepare finds out what is reached and known.
func (w *work) prepare(o options, defects []defect) (err error) {
	if w.functions, err = w.testFunctions(); err != nil {
		return err
	}
	edits := map[string][]edit{}
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
			covered = append(covered, dir)
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
	for _, f := range w.functions {
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

// named runs the tests of the list that have no cell yet.
func (w *work) named(m mutant) {
	if m.fault.state != "" || time.Now().After(w.end) {
		return
	}
	for _, t := range m.tests {
		o, dir, err := m.runTest(t, m.limit)
		if err != nil {
			return
		}
		// What is run in part may kill, but says nothing of the rest.
		w.take(&m, dir, o, strings.Contains(t.pattern, "/"))
	}
}

// of are the functions of a test of the list.
func (w *work) of(t test) (all []*function) {
	dir, _ := w.dirOf(t.pkg)
	pattern, _, _ := strings.Cut(t.pattern, "/")
	for _, f := range w.functions {
		if matches, _ := regexp.MatchString(pattern, f.name); matches && f.dir == dir {
			all = append(all, f)
		}
	}
	return all
}

// next is the job that promises the most first kills a second, or nil when time is over.
func (w *work) next() (best *job) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Now().After(w.end) {
		return nil
	}
	if time.Since(w.saved) > time.Minute {
		w.saved = time.Now()
		if err := w.save(w.tree); err != nil {
			fmt.Println(err)
		}
	}
	worth := map[*function]float64{}
	for _, f := range w.functions {
		reaches, _, unknown := w.count(f)
		worth[f] = 1 / float64(reaches-unknown+4) // less if it has been run in vain
		if !w.isIdle(f) {
			worth[f] /= 50
		}
	}
	slices.SortFunc(w.functions, func(a, b *function) int {
		return cmp.Compare(worth[b]/(b.Seconds+1), worth[a]/(a.Seconds+1))
	})
	most, packages := 0.0, w.packages()
	for i := range w.mutants {
		m := &w.mutants[i]
		chance := w.chance(m.name)
		for dir, functions := range packages {
			j := &job{mutant: m, dir: dir, seconds: building}
			gain := 0.0
			for _, f := range functions {
				more, longer := chance*worth[f], j.seconds+f.Seconds
				if w.known(cell{m.name, f}) || (gain+more)/longer < gain/j.seconds || longer > longest {
					continue
				}
				j.functions, gain, j.seconds = append(j.functions, f), gain+more, longer
			}
			if gain/j.seconds > most && m.fault.state == "" && !w.busy[m.name] && !w.begun[j.name()] {
				best, most = j, gain/j.seconds
			}
		}
	}
	if best != nil {
		w.begun[best.name()], w.busy[best.mutant.name] = true, true
	}
	return best
}

// chance is how likely it is that a function that reaches a defect kills it: more so where many have,
// or where few reach it.
func (w *work) chance(defect string) float64 {
	reach, ran, kills := 0.0, 0.0, 0.0
	for _, f := range w.functions {
		c := cell{defect, f}
		if w.reached[c] {
			reach++
		}
		if w.hasRun(c) {
			ran++
		}
		if w.kills[c] {
			kills++
		}
	}
	return max(kills/(ran+4), 2/(reach+1))
}

// The seconds that a build costs, and those of the longest job without a defect.
const building, longest = 20.0, 45.0

func (j *job) name() string { return fmt.Sprint(j.mutant.name, j.functions) }

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
func (m *matrix) isIdle(f *function) bool {
	_, kills, _ := m.count(f)
	return kills == 0 && f.listed == 0
}

// runAll runs a job; after a panic, or a hang, it goes on with the rest.
func (w *work) runAll(j *job) {
	binary, err := j.build(j.dir)
	defer func() {
		_ = os.Remove(binary)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.busy[j.mutant.name] = false
		if err != nil {
			j.fault = verdict{state: stateBroken, detail: err.Error()}
			fmt.Printf("%-36s %s\n", j.mutant.name, j.fault)
		}
	}()
	left := j.functions
	for hangs, runs := 0, 0; err == nil && len(left) > 0 && hangs < 2 && runs < 10; runs++ {
		o := j.runOf(binary, left)
		var again []*function
		w.mu.Lock()
		for _, f := range left {
			if slices.Contains(o.killers(), f.name) && w.isIdle(f) {
				again = append(again, f)
			}
		}
		w.mu.Unlock()
		if len(again) > 0 { // on a busy machine a test may fail for want of time, and its first kill is what matters
			for name, result := range j.runOf(binary, again).results {
				if result == "PASS" {
					o.results[name] = result
				}
			}
		}
		done := w.take(j.mutant, j.dir, o, false)
		if len(done) == 0 || !o.failed {
			return
		}
		if o.hung {
			hangs++
		}
		left = slices.DeleteFunc(left, func(f *function) bool { return slices.Contains(done, f.name) })
	}
}

// runOf runs functions of a job. They have four times what they take without a defect.
func (j *job) runOf(binary string, functions []*function) outcome {
	limit := 15.0
	var names []string
	for _, f := range functions {
		limit += 4 * f.Seconds
		names = append(names, f.name)
	}
	return j.run(binary, j.dir, time.Duration(limit*float64(time.Second)), "^("+strings.Join(names, "|")+")$")
}
