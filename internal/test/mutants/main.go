// Mutants puts known defects back into the module, one at a time, and shows that the tests catch each
// of them. defects.txt is the list, and list.go describes its format. The go command sees a defect
// as an overlay, so the working tree is not touched and not copied. A test that reads sources of the
// module does not see it.
//
// It is the long form of the test suite and no part of it: it takes about ten minutes on two cores,
// and 12 MB of disk for each defect. A change of product code may make an entry stale ("does not apply"):
// then correct the entry. Run it at the root of the module, with redis-server on the path (the
// scripts are compared on a real server), before a release and after work on the engine or on its
// tests:
//
//	go run ./internal/test/mutants                  # all of them, two at a time
//	go run ./internal/test/mutants -run 'hint|queue'
//	go run ./internal/test/mutants -list
//	go run ./internal/test/mutants -run '^name$' -into folder   # a copy of the module with the defect, for other programs
//
// First the tests of all defects are built, and what does not apply or does not build is said. Then
// every test named in the list must pass without a defect. Then there is one line for each defect:
// caught (by which test, after how long), hang (caught too, but only by the time limit), MISSED, or
// has no test. The exit status is 0 if all are caught.
//
// # The matrix
//
// The list says who should catch a defect; matrix.txt says who does, and so which test functions
// catch nothing. Its head describes it.
//
//	go run ./internal/test/mutants -matrix -for 1h   # run what is not known yet, for an hour
//	go run ./internal/test/mutants -idle             # the functions that kill nothing, long ones first
//
// Coverage tells which functions reach the code of a defect; the others need no run. Of the rest the
// command runs first what promises the most: functions that kill nothing yet, on defects that few can
// catch or that many have caught. At the end it runs the tests that the list names. A row stays while
// the defect and the declarations that it changes do, a column while its function does; helpers are
// not looked at. To have a part made anew, delete its lines.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"sync"
	"time"
)

// options are the flags.
type options struct {
	run, into                string
	list, sure, matrix, idle bool
	jobs                     int
	limit                    time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.run, "run", "", "only the defects with a name that matches this `regexp`")
	flag.BoolVar(&o.list, "list", false, "print the defects, and run nothing")
	flag.IntVar(&o.jobs, "jobs", 2, "how many at a time")
	flag.BoolVar(&o.sure, "sure", false, "do not run the tests without a defect first")
	flag.StringVar(&o.into, "into", "", "leave a copy of the module with the first of the defects in a `folder`, and run nothing")
	flag.BoolVar(&o.matrix, "matrix", false, "bring matrix.txt up to date")
	flag.DurationVar(&o.limit, "for", time.Hour, "of -matrix: begin no run after this time")
	flag.BoolVar(&o.idle, "idle", false, "print the test functions that kill nothing in matrix.txt, and run nothing")
	flag.Parse()
	ok, err := o.work()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// work does what the flags say, and reports whether all is well.
func (o options) work() (ok bool, err error) {
	pattern, err := regexp.Compile(o.run)
	if err != nil {
		return false, err
	}
	all, err := parse(theList)
	if err != nil {
		return false, err
	}
	var defects []defect
	for _, d := range all {
		if pattern.MatchString(d.name) {
			defects = append(defects, d)
		}
	}
	if o.list {
		for _, d := range defects {
			fmt.Printf("%-36s %s\n", d.name, d.why)
		}
		return true, nil
	}
	if len(defects) == 0 {
		return false, fmt.Errorf("no defect is called %q", o.run)
	}
	root, err := os.Getwd()
	if err != nil {
		return false, err
	}
	temporary, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(temporary)
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	go func() {
		<-interrupted
		_ = os.RemoveAll(temporary)
		os.Exit(1)
	}()
	t := tree{root: root, dir: temporary}
	switch {
	case o.idle:
		return true, printIdle(t)
	case o.into != "":
		t, err := t.mutate(defects[0], temporary)
		if err == nil {
			err = t.copyTo(o.into)
		}
		return err == nil, err
	case o.matrix:
		return true, o.fill(t, all, defects)
	}
	return o.catch(t, defects), nil
}

// catch reports whether all defects are caught.
func (o options) catch(t tree, defects []defect) bool {
	mutants := o.mutants(t, defects)
	ok := o.sure || o.healthy(t, defects)
	began, count := time.Now(), map[string]int{}
	var mu sync.Mutex
	each(o.jobs, mutants, func(m mutant) {
		v := m.try()
		_ = os.RemoveAll(m.dir)
		mu.Lock()
		defer mu.Unlock()
		count[v.state]++
		fmt.Printf("%-36s %s\n", m.name, v)
	})
	caught := count[stateCaught] + count[stateHang]
	fmt.Printf("%d of %d defects are caught, %d of them by the time limit; %.0f s\n",
		caught, len(defects), count[stateHang], time.Since(began).Seconds())
	return ok && caught == len(defects)
}

// healthy runs the tests of all defects without any: a test that fails anyway catches nothing.
func (o options) healthy(tree tree, defects []defect) bool {
	var tests []test
	limit := map[string]time.Duration{}
	for _, d := range defects {
		for _, t := range d.tests {
			if limit[t.String()] == 0 {
				tests = append(tests, t)
			}
			limit[t.String()] = max(limit[t.String()], d.limit)
		}
	}
	for _, t := range tests { // one after the other: some are of the same binary
		_, _, _ = tree.buildTest(t)
	}
	healthy := true
	var mu sync.Mutex
	each(o.jobs, tests, func(t test) {
		v := tree.test(t, limit[t.String()])
		if v.state == stateMissed {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		healthy = false
		fmt.Printf("without a defect, go test %s: %s\n", t, v)
	})
	return healthy
}

// each has every item handled, some at a time.
func each[T any](jobs int, items []T, handle func(T)) {
	next := make(chan T)
	var wg sync.WaitGroup
	for range max(1, jobs) {
		wg.Go(func() {
			for item := range next {
				handle(item)
			}
		})
	}
	for _, item := range items {
		next <- item
	}
	close(next)
	wg.Wait()
}
