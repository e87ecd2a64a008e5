package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// outcome is what a run of a test binary has shown.
type outcome struct {
	results map[string]string // PASS, FAIL or SKIP of a test function
	last    string            // the one that hangs or was begun last
	depth   int               // of the deepest subtest that was begun
	failed  bool              // the process
	hung    bool
	skipped bool // a part, for want of a server
	took    time.Duration
}

// run runs a pattern of a test binary of the package in a folder.
func (t tree) run(binary, dir string, limit time.Duration, pattern string, flags ...string) (o outcome) {
	// The test ends itself at its limit, and shows where it hangs.
	ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second)
	defer cancel()
	// The marks of test2json tell a result from what a test prints.
	cmd := exec.CommandContext(ctx, binary, append(flags, "-test.run="+pattern, "-test.v=test2json", "-test.count=1", "-test.timeout="+limit.String())...)
	cmd.Dir, cmd.Env = filepath.Join(t.root, dir), t.environ()
	cmd.WaitDelay = time.Second // of its children
	began := time.Now()
	out, err := cmd.CombinedOutput()
	o = outcome{
		results: map[string]string{}, failed: err != nil, took: time.Since(began),
		hung:    ctx.Err() != nil || bytes.Contains(out, []byte("panic: test timed out")),
		skipped: bytes.Contains(out, []byte("--- SKIP")),
	}
	for _, m := range result.FindAllSubmatch(out, -1) {
		o.results[string(m[2])] = string(m[1])
	}
	for _, m := range begun.FindAllSubmatch(out, -1) {
		o.last = string(m[1])
		o.depth = max(o.depth, strings.Count(o.last, "/"))
	}
	if m := hangs.FindSubmatch(out); m != nil {
		o.last = string(m[1])
	}
	return o
}

var (
	result = regexp.MustCompile(`\x16--- (PASS|FAIL|SKIP): ([^/\s]+) `)
	begun  = regexp.MustCompile(`\x16=== (?:RUN|CONT|NAME) +(\S+)`)
	hangs  = regexp.MustCompile(`running tests:\s+(\S+)`)
)

// having names the functions with a result.
func (o outcome) having(result string) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(o.results)) {
		if o.results[name] == result {
			names = append(names, name)
		}
	}
	return names
}

// killers are the functions that have failed, and the one that ended the process.
func (o outcome) killers() []string {
	names := o.having("FAIL")
	last, _, _ := strings.Cut(o.last, "/")
	if o.results[last] == "" && o.failed {
		names = append(names, last)
	}
	return names
}

// The results of a defect.
const (
	stateCaught = "caught"
	stateHang   = "hang"
	stateMissed = "MISSED"
	stateStale  = "does not apply"
	stateBroken = "does not build"
	stateNoTest = "has no test"
)

type verdict struct {
	state   string
	detail  string // the test, or the fault
	skipped bool   // a part of a test was, for want of a server
	took    time.Duration
}

func (v verdict) String() string {
	s := fmt.Sprintf("%-7s %5.1fs  %s", v.state, v.took.Seconds(), v.detail)
	if v.skipped {
		s += " (a test was skipped)"
	}
	return s
}

// verdict is of an outcome of a test.
func (o outcome) verdict(t test) verdict {
	v := verdict{state: stateMissed, detail: t.String(), took: o.took, skipped: o.skipped}
	switch names := o.having("FAIL"); {
	case o.hung:
		v.state, v.detail = stateHang, o.last
	case len(names) > 0:
		v.state, v.detail = stateCaught, strings.Join(names, ", ")
	case o.failed:
		v.state, v.detail = stateCaught, o.last+", which panics"
	case o.last == "" || o.depth < t.depth(): // a subtest may be gone where its function is there
		v.state = stateNoTest
	}
	return v
}
