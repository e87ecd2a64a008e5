package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// tree is the root of a copy of the module.
type tree string

// copies makes n copies of the files known to git, or new to it.
func copies(dir string, n int) (trees []tree, err error) {
	out, err := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	for i := range max(1, n) {
		root := filepath.Join(dir, fmt.Sprint(i))
		for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
			src, err := os.ReadFile(name)
			if os.IsNotExist(err) {
				continue // deleted, and still in git's index
			}
			if err == nil {
				err = os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(root, name), src, 0o644)
			}
			if err != nil {
				return nil, err
			}
		}
		trees = append(trees, tree(root))
	}
	return trees, nil
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
	skipped bool   // a test was, for want of a server
	took    time.Duration
}

func (v verdict) String() string {
	s := fmt.Sprintf("%-7s %5.1fs  %s", v.state, v.took.Seconds(), v.detail)
	if v.skipped {
		s += " (a test was skipped)"
	}
	return s
}

// try puts a defect in, runs its tests, and takes it out again.
func (t tree) try(d defect) (v verdict) {
	undo, err := t.put(d)
	defer undo()
	if err != nil {
		return verdict{state: stateStale, detail: err.Error()}
	}
	var took time.Duration
	for _, test := range d.tests {
		last := t.test(test, d.limit)
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

// put puts a defect in, and returns its undoing.
func (t tree) put(d defect) (undo func(), err error) {
	before := map[string][]byte{}
	undo = func() {
		for file, text := range before {
			_ = os.WriteFile(file, text, 0o644)
		}
	}
	for _, h := range d.hunks {
		file, changed, err := t.apply(h)
		if err != nil {
			return undo, err
		}
		if before[file] == nil {
			if before[file], err = os.ReadFile(file); err != nil {
				return undo, err
			}
		}
		if err := os.WriteFile(file, []byte(changed), 0o644); err != nil {
			return undo, err
		}
	}
	return undo, nil
}

// command runs one in the tree.
func (t tree) command(name string, args ...string) (out []byte, err error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = string(t)
	return cmd.CombinedOutput()
}

// test builds a package's test, out of the time limit, and runs it.
func (t tree) test(test test, limit time.Duration) verdict {
	binary := string(t) + ".test"
	// Without the names of folders in it a build is found in the cache by every tree.
	build := []string{"test", "-trimpath", "-ldflags=-s -w", "-c", "-o", binary}
	var flags []string
	for _, f := range test.flags {
		if f == "-race" {
			build = append(build, f)
		} else if name, ok := strings.CutPrefix(f, "-"); ok {
			flags = append(flags, "-test."+name)
		} else {
			flags = append(flags, f)
		}
	}
	dir, err := t.dirOf(test.pkg)
	if err != nil {
		return verdict{state: stateNoTest, detail: err.Error()}
	}
	if out, err := t.command("go", append(build, "./"+dir)...); err != nil {
		return verdict{state: stateBroken, detail: firstLines(out)}
	}
	// The test ends itself at its limit, and shows where it hangs.
	ctx, cancel := context.WithTimeout(context.Background(), limit+10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append(flags, "-test.v", "-test.count=1", "-test.timeout="+limit.String())...)
	cmd.Dir = filepath.Join(string(t), dir)
	cmd.WaitDelay = time.Second // of its children
	began := time.Now()
	out, err := cmd.CombinedOutput()
	v := verdict{state: stateMissed, detail: test.String(), took: time.Since(began), skipped: bytes.Contains(out, []byte("--- SKIP"))}
	switch {
	case ctx.Err() != nil || bytes.Contains(out, []byte("panic: test timed out")):
		v.state, v.detail = stateHang, lastRun(out)
	case err != nil:
		v.state, v.detail = stateCaught, failed(out)
	case !bytes.Contains(out, []byte("=== RUN")):
		v.state = stateNoTest
	}
	return v
}

var (
	failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	started = regexp.MustCompile(`(?m)^=== RUN +(\S+)`)
)

// failed names the failed tests; a panic ends the process before they are printed.
func failed(out []byte) string {
	var names []string
	for _, m := range failure.FindAllSubmatch(out, -1) {
		if name := string(m[1]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return lastRun(out) + ", which panics"
	}
	return strings.Join(names, ", ")
}

// lastRun names the last test begun.
func lastRun(out []byte) string {
	all := started.FindAllSubmatch(out, -1)
	if len(all) == 0 {
		return "no test"
	}
	return string(all[len(all)-1][1])
}

// firstLines is the beginning of the compiler's output.
func firstLines(out []byte) string {
	lines := strings.SplitN(string(out), "\n", 5)
	return strings.Join(lines[:min(len(lines), 4)], "\n\t")
}
