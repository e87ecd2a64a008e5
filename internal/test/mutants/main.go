// Mutants puts known defects back into a copy of the module, one at a time, and shows that the
// tests catch each of them. defects.txt is the list, and list.go describes its format. The working
// tree is not touched.
//
// It is the long form of the test suite and no part of it: it takes about ten minutes on two cores.
// A change of product code may make an entry stale ("does not apply"): then correct the entry. Run
// it at the root of the module, with redis-server on the path (the scripts are compared on a real
// server), before a release and after work on the engine or on its tests:
//
//	go run ./internal/test/mutants                  # all of them, two at a time
//	go run ./internal/test/mutants -run 'hint|queue'
//	go run ./internal/test/mutants -list
//	go run ./internal/test/mutants -run '^name$' -into folder   # a copy of the module with the defect, for other programs
//
// First every test named in the list must pass without a defect. Then there is one line for each
// defect: caught (by which test, after how long), hang (caught too, but only by the time limit),
// MISSED, does not apply, does not build, or has no test. The exit status is 0 if all are caught.
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

func main() {
	run := flag.String("run", "", "only the defects with a name that matches this `regexp`")
	list := flag.Bool("list", false, "print the defects, and run nothing")
	jobs := flag.Int("jobs", 2, "how many at a time")
	sure := flag.Bool("sure", false, "do not run the tests without a defect first")
	into := flag.String("into", "", "leave a copy of the module with the first of the defects in a `folder`, and run nothing")
	flag.Parse()
	ok, err := mutate(*run, *into, *list, *sure, *jobs)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// mutate does the work, and reports whether all defects were caught.
func mutate(run, into string, list, sure bool, jobs int) (ok bool, err error) {
	pattern, err := regexp.Compile(run)
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
	if list {
		for _, d := range defects {
			fmt.Printf("%-36s %s\n", d.name, d.why)
		}
		return true, nil
	}
	if len(defects) == 0 {
		return false, fmt.Errorf("no defect is called %q", run)
	}
	if into != "" {
		trees, err := copies(into, 1)
		if err == nil {
			_, err = trees[0].put(defects[0])
		}
		return err == nil, err
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
	trees, err := copies(temporary, jobs)
	if err != nil {
		return false, err
	}
	ok = sure || healthy(trees, defects)
	began, count := time.Now(), map[string]int{}
	var mu sync.Mutex
	each(trees, defects, func(t tree, d defect) {
		v := t.try(d)
		mu.Lock()
		defer mu.Unlock()
		count[v.state]++
		fmt.Printf("%-36s %s\n", d.name, v)
	})
	caught := count[stateCaught] + count[stateHang]
	fmt.Printf("%d of %d defects are caught, %d of them by the time limit; %.0f s\n",
		caught, len(defects), count[stateHang], time.Since(began).Seconds())
	return ok && caught == len(defects), nil
}

// healthy runs the tests of all defects without any: a test that fails anyway
// catches nothing.
func healthy(trees []tree, defects []defect) bool {
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
	healthy := true
	var mu sync.Mutex
	each(trees, tests, func(tree tree, t test) {
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

// each has every item handled in one of the trees.
func each[T any](trees []tree, items []T, handle func(tree, T)) {
	next := make(chan T)
	var wg sync.WaitGroup
	for _, t := range trees {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for item := range next {
				handle(t, item)
			}
		}()
	}
	for _, item := range items {
		next <- item
	}
	close(next)
	wg.Wait()
}
