package main

import (
	_ "embed"
	"fmt"
	"math"
	"strings"
	"time"
)

// defect is one entry of the list:
//
//	[name]
//	why: what a user would suffer
//	test: package ^TestName$
//	in: package declaration
//	 a line that stays, and shows the place
//	-a line that goes
//	+a line that comes
//
// A package is the end of its path, and a declaration the name of a function, of a method, or of
// something else. Neither depends on the place of the code. Hunks are of whole lines of code:
// margins and comments do not matter, and @ is a method's own name for its receiver. The lines that
// stay and go must be found once. There may be several hunks, and several tests: the first failing
// one has caught the defect; -race behind a test builds it so. "limit: 20s" is a test's time limit,
// a minute by default. A line that begins with # is a comment, except within a hunk; an empty line
// ends a hunk.
type defect struct {
	name, why string
	tests     []test
	limit     time.Duration
	hunks     []hunk
}

// hunk is a change of one declaration.
type hunk struct{ pkg, name, old, new string }

// test is a package, and a pattern as go test -run has it.
type test struct {
	pkg, pattern string
	race         bool
}

func (t test) String() string { return t.pkg + " " + t.pattern }

// depth is that of the subtests that are named, of the shallowest where there are several.
func (t test) depth() int {
	depth := math.MaxInt
	for one := range strings.SplitSeq(t.pattern, "|") {
		depth = min(depth, strings.Count(one, "/"))
	}
	return depth
}

const defaultLimit = time.Minute

//go:embed defects.txt
var theList string

func parse(text string) (defects []defect, err error) {
	var d *defect
	inHunk := false
	names := map[string]bool{}
	for number, line := range strings.Split(text, "\n") {
		fail := func(what string) error { return fmt.Errorf("defects, line %d: %s", number+1, what) }
		if name, ok := strings.CutPrefix(line, "["); ok {
			name = strings.TrimSuffix(name, "]")
			if names[name] {
				return nil, fail("a second " + name)
			}
			names[name] = true
			defects = append(defects, defect{name: name, limit: defaultLimit})
			d, inHunk = &defects[len(defects)-1], false
			continue
		}
		if line == "" {
			inHunk = false
			continue
		}
		if inHunk && strings.ContainsRune(" +-", rune(line[0])) {
			h := &d.hunks[len(d.hunks)-1]
			if line[0] != '+' {
				h.old += line[1:] + "\n"
			}
			if line[0] != '-' {
				h.new += line[1:] + "\n"
			}
			continue
		}
		if line[0] == '#' {
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if d == nil || value == "" {
			return nil, fail("neither a field nor a hunk")
		}
		switch inHunk = false; field {
		case "why":
			d.why = value
		case "test":
			value, race := strings.CutSuffix(value, " -race")
			pkg, pattern, _ := strings.Cut(value, " ")
			d.tests = append(d.tests, test{pkg, pattern, race})
		case "limit":
			if d.limit, err = time.ParseDuration(value); err != nil {
				return nil, fail(err.Error())
			}
		case "in":
			pkg, name, _ := strings.Cut(value, " ")
			d.hunks = append(d.hunks, hunk{pkg: pkg, name: name})
			inHunk = true
		default:
			return nil, fail("unknown field " + field)
		}
	}
	for _, d := range defects {
		if d.why == "" || len(d.tests) == 0 || len(d.hunks) == 0 {
			return nil, fmt.Errorf("defect %s: it needs why, test and in", d.name)
		}
	}
	return defects, nil
}
