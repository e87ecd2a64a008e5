package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// mutant is a defect in a tree of its own.
type mutant struct {
	defect
	tree
	fault verdict // why its tests cannot run
}

// mutants puts the defects in and, but for the matrix, builds their tests. What is not possible it says
// at once.
func (o options) mutants(t tree, defects []defect) (all []mutant) {
	var mu sync.Mutex
	began := time.Now()
	each(o.jobs, defects, func(d defect) {
		m := t.mutant(d, !o.matrix)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, m)
		if m.fault.state != "" {
			fmt.Printf("%-36s %s\n", m.name, m.fault)
		}
	})
	fmt.Printf("%d defects are ready after %.0f s\n", len(all), time.Since(began).Seconds())
	slices.SortFunc(all, func(a, b mutant) int { return strings.Compare(a.name, b.name) })
	return all
}

// mutant makes one.
func (t tree) mutant(d defect, built bool) (m mutant) {
	m = mutant{defect: d}
	dir := filepath.Join(t.dir, d.name)
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		m.tree, err = t.mutate(d, dir)
	}
	if err != nil {
		m.fault = verdict{state: stateStale, detail: err.Error()}
	}
	if err != nil || !built {
		return m
	}
	for _, test := range d.tests {
		if _, _, err := m.buildTest(test); err != nil {
			m.fault = verdict{state: stateBroken, detail: err.Error()}
		}
	}
	return m
}

// try runs the tests of the list.
func (m mutant) try() (v verdict) {
	if m.fault.state != "" {
		return m.fault
	}
	var took time.Duration
	for _, test := range m.tests {
		last := m.test(test, m.limit)
		took += last.took
		last.skipped = last.skipped || v.skipped
		v = last
		if v.state != stateMissed {
			break
		}
	}
	v.took = took
	return v
}

// buildTest builds a test of the list, out of the time limit.
func (t tree) buildTest(test test) (binary, dir string, err error) {
	var flags []string
	if test.race {
		flags = []string{"-race"}
	}
	if dir, err = t.dirOf(test.pkg); err == nil {
		binary, err = t.build(dir, flags...)
	}
	return binary, dir, err
}

// runTest runs a test of the list.
func (t tree) runTest(test test, limit time.Duration) (o outcome, dir string, err error) {
	binary, dir, err := t.buildTest(test)
	if err == nil {
		o = t.run(binary, dir, limit, test.pattern)
	}
	return o, dir, err
}

// test is the verdict of a test of the list.
func (t tree) test(test test, limit time.Duration) verdict {
	o, _, err := t.runTest(test, limit)
	if err != nil {
		return verdict{state: stateBroken, detail: err.Error()}
	}
	return o.verdict(test)
}
