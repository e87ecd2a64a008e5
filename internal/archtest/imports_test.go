package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	module = "github.com/redlock-go/redlock"

	bytebufferpool = "github.com/valyala/bytebufferpool"
	redcon         = "github.com/tidwall/redcon"
	testify        = "github.com/stretchr/testify"
)

// A room is a part of the module that has a rule of its own: "redlock" (the
// root package), "resp", "quorum", "conn", "bench", or "internal/x" with all
// that is below it.
const (
	rootRoom  = "redlock"
	benchRoom = "bench"
	fakeRoom  = "internal/fakeredis"
	group     = "internal/group"
	engine    = "internal/engine"
	stdlib    = "the standard library"
)

// roomOf returns the room of a directory relative to the root.
func roomOf(dir string) string {
	if dir == "." {
		return rootRoom
	}
	parts := strings.Split(dir, "/")
	if parts[0] == "internal" && len(parts) > 1 {
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// target returns what is imported: a room, the standard library, the root of a
// module we depend on, or any other import path as it is.
func target(importPath string) string {
	if importPath == module {
		return rootRoom
	}
	if dir, ours := strings.CutPrefix(importPath, module+"/"); ours {
		return roomOf(dir)
	}
	for _, dep := range []string{bytebufferpool, redcon, testify} {
		if importPath == dep || strings.HasPrefix(importPath, dep+"/") {
			return dep
		}
	}
	first, _, _ := strings.Cut(importPath, "/")
	// The standard library has no dot in its first element. "C" is not of it:
	// the library builds without a C compiler.
	if !strings.Contains(first, ".") && importPath != "C" {
		return stdlib
	}
	return importPath
}

// mayImport is the rule: may a non-test file of one room import the other?
func mayImport(from, to string) bool {
	internal := strings.HasPrefix(from, "internal/")

	// Some things are closed to all but a few, whoever asks.
	switch to {
	case stdlib:
		return true
	case fakeRoom:
		return from == fakeRoom || from == benchRoom
	case group:
		return from == group || from == rootRoom
	case redcon:
		return from == fakeRoom || from == benchRoom
	case testify:
		return from == benchRoom || internal && strings.HasSuffix(from, "test")
	case benchRoom, rootRoom:
		return from == benchRoom
	}

	switch {
	case from == benchRoom:
		return true
	case from == rootRoom:
		return true
	case from == "conn":
		return to == "resp" || to == bytebufferpool ||
			strings.HasPrefix(to, "internal/") && to != engine
	case from == group:
		return to == "quorum" || to == "conn" || strings.HasPrefix(to, "internal/")
	case internal:
		return to == "resp" || to == "quorum" || to == "conn" ||
			strings.HasPrefix(to, "internal/")
	}
	return false // resp, quorum, and rooms nobody has decided on
}

// checkImports returns the forbidden imports of a file.
func checkImports(f file) []string {
	if f.nested || f.isTest() {
		return nil
	}
	syntax, err := parser.ParseFile(token.NewFileSet(), f.path, f.src, parser.ImportsOnly)
	if err != nil {
		return []string{err.Error()}
	}
	var problems []string
	from := roomOf(path.Dir(f.path))
	for _, spec := range syntax.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: import %s: %v", f.path, spec.Path.Value, err))
			continue
		}
		if to := target(name); !mayImport(from, to) {
			problems = append(problems, fmt.Sprintf("%s: imports %q: %s must not use %s", f.path, name, from, to))
		}
	}
	return problems
}

func TestCheckImports(t *testing.T) {
	const ours = module + "/"
	for _, c := range []struct {
		path, imports string
		ok            bool
	}{
		{"resp/a.go", "strconv", true},
		{"resp/a.go", "unsafe", true},
		{"resp/a.go", "go/token", true},
		{"resp/a.go", "C", false},
		{"resp/a.go", ours + "quorum", false},
		{"resp/a.go", ours + "internal/clock", false},
		{"resp/a.go", bytebufferpool, false},
		{"resp/a.go", testify + "/require", false},
		{"resp/a_test.go", testify + "/require", true},
		{"resp/a_test.go", ours + fakeRoom, true},

		{"quorum/a.go", "math/bits", true},
		{"quorum/a.go", ours + "internal/clock", false},
		{"quorum/a.go", ours + "resp", false},
		{"quorum/sub/a.go", ours + "conn", false},

		{"conn/a.go", ours + "resp", true},
		{"conn/a.go", bytebufferpool, true},
		{"conn/a.go", ours + "internal/clock", true},
		{"conn/a.go", ours + "quorum", false},
		{"conn/a.go", ours + engine, false},
		{"conn/a.go", ours + engine + "/wave", false},
		{"conn/a.go", ours + group, false},
		{"conn/a.go", ours + fakeRoom, false},
		{"conn/a.go", module, false},
		{"conn/a.go", redcon, false},
		{"conn/a.go", "golang.org/x/sys/unix", false},

		{"redlock.go", ours + "conn", true},
		{"redlock.go", ours + "resp", true},
		{"redlock.go", ours + engine, true},
		{"redlock.go", ours + group, true},
		{"redlock.go", bytebufferpool, true},
		{"redlock.go", ours + fakeRoom, false},
		{"redlock.go", ours + benchRoom, false},
		{"redlock.go", ours + "bench/fleet", false},
		{"redlock.go", redcon, false},
		{"redlock.go", testify + "/assert", false},
		{"redlock_test.go", ours + fakeRoom, true},

		{"internal/group/a.go", ours + engine, true},
		{"internal/group/a.go", ours + "conn", true},
		{"internal/group/a.go", ours + "quorum", true},
		{"internal/group/a.go", ours + "internal/token", true},
		{"internal/group/a.go", ours + "resp", false},
		{"internal/group/a.go", ours + fakeRoom, false},
		{"internal/group/a.go", module, false},
		{"internal/group/a.go", bytebufferpool, false},

		{"internal/engine/a.go", ours + group, false},
		{"internal/token/a.go", ours + group, false},
		{"internal/engine/a.go", ours + "conn", true},
		{"internal/engine/a.go", ours + "quorum", true},
		{"internal/engine/a.go", ours + "internal/clock", true},
		{"internal/engine/a.go", ours + fakeRoom, false},
		{"internal/engine/a.go", module, false},
		{"internal/engine/a.go", bytebufferpool, false},
		{"internal/engine/a.go", testify, false},
		{"internal/engine/a.go", redcon, false},
		{"internal/engine/a.go", ours + benchRoom, false},
		{"internal/locktest/a.go", testify + "/require", true},
		{"internal/locktest/a.go", redcon, false},
		{"internal/locktest/a.go", ours + fakeRoom, false},
		{"internal/fakeredis/a.go", redcon, true},
		{"internal/fakeredis/a.go", ours + fakeRoom + "/fault", true},
		{"internal/fakeredis/fault/a.go", ours + fakeRoom, true},
		{"internal/fakeredis/a.go", ours + "resp", true},
		{"internal/fakeredis/a.go", testify, false},
		{"internal/fakeredis/a.go", redcon + "stitch", false},

		{"bench/main.go", module, true},
		{"bench/main.go", ours + fakeRoom, true},
		{"bench/main.go", ours + group, false},
		{"bench/main.go", redcon, true},
		{"bench/fleet/a.go", testify + "/require", true},
		{"bench/main.go", ours + "bench/fleet", true},

		{"newroom/a.go", ours + "resp", false},
		{"newroom/a.go", bytebufferpool, false},
	} {
		src := fmt.Sprintf("package p\n\nimport (\n\t_ %q\n\tx %q\n)\n", "fmt", c.imports)
		problems := checkImports(file{path: c.path, src: []byte(src)})
		require.Equal(t, c.ok, len(problems) == 0, "%s imports %s: %q", c.path, c.imports, problems)
	}
	bad := []byte("package p\n\nimport \"" + redcon + "\"\n")
	require.Len(t, checkImports(file{path: "conn/a.go", src: bad}), 1)
	require.Empty(t, checkImports(file{path: "conn/a.go", src: bad, nested: true}))
	require.Len(t, checkImports(file{path: "conn/a.go", src: []byte("import")}), 1, "not Go at all")
}
