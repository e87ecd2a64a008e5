package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	theMatrix = "internal/test/mutants/matrix.txt"
	head      = `# Which test functions kill which seeded defects. Made by go run ./internal/test/mutants -matrix; do not edit.
#
# %s
#
# A function: its package and name, the hash of its text, its lines, how many defects it reaches (runs the code of), how
# many of them it kills, on how many it has not been run, and how many entries of defects.txt name it. One that does not
# pass here without a defect (it is skipped, for want of a server or of REDLOCK_LONG) says so, and is not run. The
# functions of bench, archtest and mutants are not here.
#
# A defect, and a package with functions that have been run: its name, its hash, the package, and the functions that
# kill it (+) or let it live (-). After a * only killers are named: each other function of the package has been run,
# or does not reach the defect. What is in no line has not been run.
`
)

// cell is a defect and a function.
type cell struct {
	defect string
	*function
}

// matrix has what is known.
type matrix struct {
	functions []*function
	hashes    map[string]string // of defects
	reached   map[cell]bool
	kills     map[cell]bool // false: it has been run, and the defect lives
}

func (m *matrix) hasRun(c cell) bool {
	_, ran := m.kills[c]
	return ran
}

// known reports whether nothing is left to run.
func (m *matrix) known(c cell) bool {
	return m.hasRun(c) || !m.reached[c]
}

// count counts the cells of a function that it reaches, kills and has not been run on.
func (m *matrix) count(f *function) (reaches, kills, unknown int) {
	for d := range m.hashes {
		c := cell{d, f}
		if m.reached[c] {
			reaches++
		}
		if m.kills[c] {
			kills++
		}
		if !m.known(c) {
			unknown++
		}
	}
	return reaches, kills, unknown
}

// sum counts the cells that are reached, those of them that have not been run, and the functions that
// kill nothing.
func (m *matrix) sum() (reached, unknown, idle int) {
	for _, f := range m.functions {
		r, _, u := m.count(f)
		reached, unknown = reached+r, unknown+u
		if f.Result == "PASS" && m.isIdle(f) {
			idle++
		}
	}
	return reached, unknown, idle
}

// packages has the functions by package.
func (m *matrix) packages() map[string][]*function {
	all := map[string][]*function{}
	for _, f := range m.functions {
		all[f.dir] = append(all[f.dir], f)
	}
	return all
}

// text writes the matrix.
func (m *matrix) text() string {
	var functions, rows []string
	for _, f := range m.functions {
		if f.Result != "PASS" {
			functions = append(functions, fmt.Sprintf("%s %s %d lines, does not pass: %s", f, f.hash, f.lines, cmp.Or(f.Result, "no result")))
			continue
		}
		r, k, u := m.count(f)
		functions = append(functions, fmt.Sprintf("%s %s %d lines, reaches %d, kills %d, not run %d, listed %d", f, f.hash, f.lines, r, k, u, f.listed))
	}
	for dir, functions := range m.packages() {
		for d, hash := range m.hashes {
			if row := m.row(d, functions); row != "" {
				rows = append(rows, d+" "+hash+" "+dir+row)
			}
		}
	}
	slices.Sort(functions)
	slices.Sort(rows)
	reached, unknown, idle := m.sum()
	sum := fmt.Sprintf("%d of the %d cells where a function reaches a defect have not been run; %d functions kill\n# nothing so far, and are not named by defects.txt.", unknown, reached, idle)
	return fmt.Sprintf(head, sum) + "\n== functions\n" + strings.Join(functions, "\n") + "\n\n== defects\n" + strings.Join(rows, "\n") + "\n"
}

// row writes what functions of a package do to a defect.
func (m *matrix) row(defect string, functions []*function) (row string) {
	var killers, others []string
	whole, ran := true, false
	for _, f := range functions {
		c := cell{defect, f}
		kills, known := m.kills[c]
		ran = ran || known
		whole = whole && m.known(c)
		switch {
		case kills:
			killers = append(killers, f.name)
		case known:
			others = append(others, f.name)
		}
	}
	slices.Sort(killers)
	slices.Sort(others)
	if whole && ran {
		row, others = " *", nil
	}
	for _, name := range killers {
		row += " +" + name
	}
	for _, name := range others {
		row += " -" + name
	}
	return row
}

// load takes over what a text says of defects and functions that are the same.
func (m *matrix) load(text string) {
	same := map[string]*function{} // by the beginning of their lines
	for _, f := range m.functions {
		same[f.String()+" "+f.hash] = f
	}
	packages := map[string]map[string]*function{}
	functions, rows, _ := strings.Cut(text, "== defects\n")
	for line := range strings.Lines(functions) {
		words := strings.Fields(line)
		if len(words) < 3 || same[strings.Join(words[:3], " ")] == nil {
			continue
		}
		if packages[words[0]] == nil {
			packages[words[0]] = map[string]*function{}
		}
		packages[words[0]][words[1]] = same[strings.Join(words[:3], " ")]
	}
	for line := range strings.Lines(rows) {
		words := strings.Fields(line)
		if len(words) < 4 || m.hashes[words[0]] != words[1] {
			continue
		}
		functions := packages[words[2]]
		for _, word := range words[3:] {
			if word == "*" {
				for _, f := range functions {
					if c := (cell{words[0], f}); m.reached[c] {
						m.kills[c] = false
					}
				}
			} else if f := functions[word[1:]]; f != nil {
				m.kills[cell{words[0], f}] = word[0] == '+'
			}
		}
	}
}

func (m *matrix) save(t tree) error {
	return os.WriteFile(filepath.Join(t.root, theMatrix), []byte(m.text()), 0o644)
}

// printIdle prints the lines of functions that kill nothing, long ones first.
func printIdle(t tree) error {
	text, err := os.ReadFile(filepath.Join(t.root, theMatrix))
	if err != nil {
		return err
	}
	var idle []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, ", kills 0,") && strings.HasSuffix(line, ", listed 0\n") {
			idle = append(idle, line)
		}
	}
	length := func(line string) (n int) {
		_, _ = fmt.Sscan(strings.Fields(line)[3], &n)
		return n
	}
	slices.SortStableFunc(idle, func(a, b string) int { return length(b) - length(a) })
	fmt.Print(strings.Join(idle, ""))
	return nil
}
