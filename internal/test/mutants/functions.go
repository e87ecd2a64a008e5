package main

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// function is a test function, an example or a fuzz target.
type function struct {
	dir, name, hash string
	lines, listed   int  // listed: for how many defects the list names it
	apart           bool // it starts this binary, and a child process leaves no profile
	reach                // without a defect
}

func (f *function) String() string { return f.dir + " " + f.name }

// reach is what a function does without a defect.
type reach struct {
	Result  string // PASS; it kills nothing else
	Seconds float64
	Runs    map[string][][2]int // the lines that run, by file
}

// aside are packages that are not of the matrix: the programs of bench, and what reads sources.
var aside = []string{"bench", "internal/test/archtest", "internal/test/mutants"}

// testFunctions finds those of the module.
func (t tree) testFunctions() (all []*function, err error) {
	out, err := t.command("list", "-f", `{{.Dir}}{{range .TestGoFiles}} {{.}}{{end}}{{range .XTestGoFiles}} {{.}}{{end}}`, "./...")
	if err != nil {
		return nil, fmt.Errorf("go list: %s", out)
	}
packages:
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		dir, err := filepath.Rel(t.root, words[0])
		if err != nil {
			return nil, err
		}
		for _, a := range aside {
			if dir == a || strings.HasPrefix(dir, a+"/") {
				continue packages
			}
		}
		for _, file := range words[1:] {
			text, err := os.ReadFile(filepath.Join(words[0], file))
			if err != nil {
				return nil, err
			}
			fset := token.NewFileSet()
			parsed, err := parser.ParseFile(fset, file, text, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			for _, d := range parsed.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Recv != nil || f.Name.Name == "TestMain" || !isTest(f.Name.Name) {
					continue
				}
				from, to := fset.Position(f.Pos()), fset.Position(f.End())
				code := string(text[from.Offset:to.Offset])
				all = append(all, &function{
					dir: dir, name: f.Name.Name, lines: to.Line - from.Line + 1, hash: hash(code),
					apart: strings.Contains(code, "testkit.Apart(") || strings.Contains(code, "startHolders("),
				})
			}
		}
	}
	return all, nil
}

func isTest(name string) bool {
	return strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Example") || strings.HasPrefix(name, "Fuzz")
}

// measure runs each function of a package alone, for what it reaches of other packages. It is
// remembered while the binary is the same.
func (t tree) measure(dir string, functions []*function, covered []string) error {
	binary, err := t.build(dir, "-cover", "-coverpkg=./"+strings.Join(covered, ",./"))
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	known, cache := map[string]reach{}, cacheOf(binary)
	if text, err := os.ReadFile(cache); err == nil {
		if err := json.Unmarshal(text, &known); err != nil {
			return fmt.Errorf("%s: %w", cache, err)
		}
	}
	for _, f := range functions {
		if r, ok := known[f.name]; ok && r.Result != "FAIL" {
			f.reach = r
			continue
		}
		pattern, profile := "^"+f.name+"$", filepath.Join(t.dir, hash(f.String()))
		o := t.run(binary, dir, time.Minute, pattern, "-test.coverprofile="+profile)
		f.Runs, _ = runs(profile)
		if o.failed { // perhaps for what coverage prints; what ran before has run
			plain, err := t.build(dir)
			if err != nil {
				return err
			}
			o = t.run(plain, dir, time.Minute, pattern)
		}
		f.Result, f.Seconds = o.results[f.name], math.Round(100*o.took.Seconds())/100
		known[f.name] = f.reach
	}
	text, err := json.Marshal(known)
	if err == nil {
		err = os.WriteFile(cache, text, 0o644)
	}
	return err
}

// cacheOf is a file for what is known of a binary.
func cacheOf(binary string) string {
	text, _ := os.ReadFile(binary)
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, "redlock-mutants")
	_ = os.MkdirAll(dir, 0o755)
	return filepath.Join(dir, hash(string(text))+".json")
}

// runs are the lines of a profile's blocks that have run, by file.
func runs(profile string) (all map[string][][2]int, err error) {
	text, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	all = map[string][][2]int{}
	for line := range strings.Lines(string(text)) {
		file, block, _ := strings.Cut(strings.TrimPrefix(line, module+"/"), ":")
		var from, to, column, statements, count int
		if _, err := fmt.Sscanf(block, "%d.%d,%d.%d %d %d", &from, &column, &to, &column, &statements, &count); err == nil && count > 0 {
			all[file] = append(all[file], [2]int{from, to})
		}
	}
	return all, os.Remove(profile)
}

const module = "github.com/redlock-go/redlock"

// reaches reports whether the function runs code that an edit changes. Those that start processes reach all that they may
// run: the tests of a command all of it, those that run apart everything.
func (f *function) reaches(t tree, e edit) bool {
	file, _ := filepath.Rel(t.root, e.file)
	dir := filepath.Dir(file)
	switch {
	case f.Result != "PASS":
		return false
	case f.apart, dir == f.dir && strings.Contains(dir, "/cmd/"):
		return true
	case e.from == 0:
		for other := range f.Runs {
			if filepath.Dir(other) == dir {
				return true
			}
		}
		return false
	}
	return slices.ContainsFunc(f.Runs[file], func(lines [2]int) bool { return lines[0] <= e.to && lines[1] >= e.from })
}

// measureAll measures functions, some packages at a time.
func (o options) measureAll(t tree, functions []*function, covered []string) error {
	packages := map[string][]*function{}
	var dirs []string
	for _, f := range functions {
		if packages[f.dir] == nil {
			dirs = append(dirs, f.dir)
		}
		packages[f.dir] = append(packages[f.dir], f)
	}
	var mu sync.Mutex
	var failed error
	each(o.jobs, dirs, func(dir string) {
		err := t.measure(dir, packages[dir], covered)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failed = err
		}
		fmt.Printf("coverage of %d functions: %s\n", len(packages[dir]), dir)
	})
	return failed
}
