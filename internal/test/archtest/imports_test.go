package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/redlock-go/redlock"

// A room is a part of the module with a rule of its own: "redlock" (the root package), "resp",
// "quorum", "conn", "conn/conntest", "bench", or "internal/x" with all below it.
func roomOf(dir string) string {
	parts := strings.Split(dir, "/")
	switch {
	case dir == ".":
		return "redlock"
	case dir == "conn/conntest": // not a part of conn: it has servers
		return dir
	case parts[0] == "internal" && len(parts) > 2 && parts[1] != "cmd":
		return strings.Join(parts[:3], "/")
	case parts[0] == "internal" && len(parts) > 1:
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// target returns the kind of an import: a room, "std", or the root of another module. "C" is no
// part of std: the library builds without a C compiler.
func target(importPath string) string {
	if importPath == module {
		return "redlock"
	}
	if dir, ours := strings.CutPrefix(importPath, module+"/"); ours {
		return roomOf(dir)
	}
	if first, _, _ := strings.Cut(importPath, "/"); !strings.Contains(first, ".") && importPath != "C" {
		return "std"
	}
	parts := strings.Split(importPath, "/")
	return strings.Join(parts[:min(3, len(parts))], "/")
}

// below has, for each part of the house, the parts it may import beside its own. Go itself refuses
// circles within a wing.
var below = map[string][]string{
	"resp":            {},
	"quorum":          {},
	"internal/base":   {},
	"internal/rules":  {"quorum", "internal/base"},
	"internal/wire":   {"resp", "quorum", "internal/rules"},
	"conn":            {"resp", "quorum", "internal/base", "internal/wire"},
	"internal/client": {"resp", "quorum", "conn", "internal/base", "internal/rules", "internal/wire"},
	"redlock":         {"quorum", "internal/base/metrics", "internal/client", "internal/client/texts"}, // these rooms alone
	"internal/server": {"resp", "quorum", "conn", "internal/wire", "redlock"},
	"internal/cmd":    {"resp", "conn", "internal/base", "internal/server", "redlock"},
	"internal/test":   {"resp", "quorum", "conn", "internal/base", "internal/rules", "internal/wire", "internal/server", "redlock"},
	"conn/conntest":   {}, // see alone
	"bench":           {"resp", "quorum", "conn", "internal/base", "internal/wire", "internal/server", "internal/test", "redlock"},
}

// alone names a thing's only importers, beside those of below.
var alone = map[string][]string{
	"internal/test/embedded":            {"internal/cmd"}, // its masters are those of tests, for trying and nothing else
	"internal/test/fakeredis":           {"conn/conntest"},
	"github.com/tidwall/redcon":         {"bench", "internal/test/fakeredis"},
	"github.com/stretchr/testify":       {"bench", "internal/test/testkit"},
	"github.com/valyala/bytebufferpool": {"bench", "conn"},
}

// blind has the rooms that must not see others of their wing or below it.
var blind = map[string][]string{
	"conn":                    {"internal/wire/command", "internal/wire/token"}, // it knows no locks: its questions and their answers are opaque
	"internal/test/mutants":   {"internal/test/testkit", "internal/test/fakeredis", "redlock"},
	"internal/test/fakeredis": {"internal/test/testkit", "redlock"},
}

// wingOf is a room's part of the house.
func wingOf(room string) string {
	if parts := strings.Split(room, "/"); parts[0] == "internal" {
		return strings.Join(parts[:min(2, len(parts))], "/")
	}
	return room
}

// mayImport is the rule for files other than tests.
func mayImport(from, to string) bool {
	wing := wingOf(from)
	own, known := below[wing]
	switch {
	case !known: // an undecided room
		return false
	case to == "std" || to == from || slices.Contains(alone[to], from):
		return true
	case slices.Contains(blind[from], to):
		return false
	}
	if from != "redlock" {
		to = wingOf(to)
	}
	return to == wing || slices.Contains(own, to)
}

// checkImports returns the forbidden imports of a file.
func checkImports(f file) (problems []string) {
	if f.nested || strings.HasSuffix(f.path, "_test.go") {
		return nil
	}
	from := roomOf(path.Dir(f.path))
	for _, name := range importsOf(f) {
		if to := target(name); !mayImport(from, to) {
			problems = append(problems, fmt.Sprintf("%s: imports %q: %s must not use %s (imports point downwards: the comment of this package has the wings)", f.path, name, from, to))
		}
		// A guessed token releases another client's lock.
		if from == "internal/wire/token" && strings.HasPrefix(name, "math/rand") {
			problems = append(problems, f.path+": tokens come from crypto/rand, not from "+name)
		}
	}
	return problems
}

func importsOf(f file) (names []string) {
	syntax, err := parser.ParseFile(token.NewFileSet(), f.path, f.src, parser.ImportsOnly)
	if err != nil {
		panic(err)
	}
	for _, spec := range syntax.Imports {
		name, _ := strconv.Unquote(spec.Path.Value)
		names = append(names, name)
	}
	return names
}

// TestForbiddenImports: each kind of rule refuses something. TestFiles shows that they let the rest pass.
func TestForbiddenImports(t *testing.T) {
	const ours = module + "/"
	for _, c := range []struct {
		path, imports string
		ok            bool
	}{
		{"resp/a_test.go", ours + "internal/test/fakeredis", true},
		{"conn/conntest/a.go", ours + "internal/test/fakeredis", true},
		{"internal/cmd/redlock/a.go", ours + "internal/test/embedded", true},
		{"internal/wire/token/a.go", "crypto/rand", true},
		{"resp/a.go", "C", false},
		{"resp/a.go", ours + "quorum", false},
		{"conn/a.go", ours + "internal/wire/command", false},
		{"conn/a.go", "golang.org/x/sys/unix", false},
		{"internal/wire/token/a.go", "math/rand/v2", false},
		{"redlock.go", ours + "internal/client/group", false},
		{"internal/test/fakeredis/a.go", "github.com/stretchr/testify/require", false},
		{"internal/other/a.go", ours + "resp", false},
	} {
		src := fmt.Sprintf("package p\n\nimport (\n\t_ %q\n\tx %q\n)\n", "fmt", c.imports)
		problems := checkImports(file{path: c.path, src: []byte(src)})
		require.Equal(t, c.ok, len(problems) == 0, "%s imports %s: %q", c.path, c.imports, problems)
	}
}
