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

// A room is a part of the module that has a rule of its own: "redlock" (the
// root package), "resp", "quorum", "conn", "conn/conntest", "bench", or "internal/x" with all
// that is below it.
func roomOf(dir string) string {
	parts := strings.Split(dir, "/")
	switch {
	case dir == ".":
		return "redlock"
	case dir == "conn/conntest": // not a part of conn: it has servers
		return dir
	case parts[0] == "internal" && len(parts) > 1:
		return parts[0] + "/" + parts[1]
	}
	return parts[0]
}

// target returns what is imported: a room, "std", or the root of another module.
// "C" is no part of std: the library builds without a C compiler.
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

// restricted names the only rooms, beside itself, that may import a thing.
var restricted = map[string][]string{
	"redlock":                           {"bench", "internal/testkit", "internal/grants", "internal/frontend", "internal/cmd"},
	"internal/session":                  {"internal/frontend", "internal/cmd"},
	"internal/grants":                   {"internal/frontend"},
	"internal/frontend":                 {"internal/cmd", "bench"},
	"internal/embedded":                 {"internal/cmd"}, // its masters are those of tests, for trying and nothing else
	"internal/cmd":                      {},
	"bench":                             {},
	"internal/router":                   {"redlock"},
	"internal/group":                    {"redlock", "internal/router"},
	"conn/conntest":                     {}, // or a user of the library compiles a server
	"internal/fakeredis":                {"bench", "internal/testkit", "conn/conntest", "internal/embedded"},
	"internal/realredis":                {"bench", "internal/testkit"},
	"internal/knobs":                    {"redlock", "internal/group", "bench", "internal/testkit"},
	"internal/testkit":                  {},
	"github.com/tidwall/redcon":         {"bench", "internal/fakeredis"},
	"internal/luascript":                {"internal/frontend"},
	"github.com/stretchr/testify":       {"bench", "internal/testkit"},
	"github.com/valyala/bytebufferpool": {"bench", "internal/fleet"},
}

// pure rooms import nothing of the project but these.
var pure = map[string][]string{
	"resp":                {},
	"quorum":              {},
	"conn":                {"internal/refusal"},
	"internal/fleet":      {"conn", "resp", "quorum", "internal/refusal", "internal/clock", "github.com/valyala/bytebufferpool"}, // knows no locks: what it asks and what the answers mean is opaque
	"internal/refusal":    {"resp"},
	"internal/command":    {"resp", "quorum", "internal/refusal", "internal/fencing"},
	"internal/fencing":    {"quorum"},
	"internal/mutants":    {},
	"internal/knobs":      {},
	"internal/renewal":    {},
	"internal/contention": {"quorum", "internal/clock"},
	"internal/luascript":  {},
	"internal/metrics":    {},
}

// mayImport is the rule for files that are not tests.
func mayImport(from, to string) bool {
	if to == "std" || to == from {
		return true
	}
	if only, ok := restricted[to]; ok {
		return slices.Contains(only, from)
	}
	if only, ok := pure[from]; ok {
		return slices.Contains(only, to)
	}
	inside := strings.HasPrefix(to, "internal/")
	switch {
	case from == "bench" || from == "redlock":
		return true
	case strings.HasPrefix(from, "internal/"):
		return inside || to == "resp" || to == "quorum" || to == "conn"
	}
	return false // rooms that were not decided on
}

// checkImports returns the forbidden imports of a file.
func checkImports(f file) (problems []string) {
	if f.nested || strings.HasSuffix(f.path, "_test.go") {
		return nil
	}
	from := roomOf(path.Dir(f.path))
	names, err := importsOf(f)
	if err != nil {
		return []string{err.Error()}
	}
	for _, name := range names {
		if to := target(name); !mayImport(from, to) {
			problems = append(problems, fmt.Sprintf("%s: imports %q: %s must not use %s", f.path, name, from, to))
		}
		// A guessed token releases another client's lock.
		if from == "internal/token" && strings.HasPrefix(name, "math/rand") {
			problems = append(problems, f.path+": tokens come from crypto/rand, not from "+name)
		}
	}
	return problems
}

func importsOf(f file) (names []string, err error) {
	syntax, err := parser.ParseFile(token.NewFileSet(), f.path, f.src, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	for _, spec := range syntax.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, nil
}

// TestForbiddenImports: each rule refuses something, and lets the rest pass.
func TestForbiddenImports(t *testing.T) {
	const ours = module + "/"
	for _, c := range []struct {
		path, imports string
		ok            bool
	}{
		{"resp/a.go", "strconv", true},
		{"resp/a.go", "C", false},
		{"resp/a.go", ours + "quorum", false},
		{"resp/a_test.go", ours + "internal/fakeredis", true},
		{"quorum/sub/a.go", ours + "conn", false},
		{"conn/a.go", ours + "internal/refusal", true},
		{"internal/fleet/a.go", ours + "resp", true},
		{"internal/fleet/a.go", ours + "internal/engine", false},
		{"internal/fleet/a.go", ours + "internal/command", false},
		{"internal/command/a.go", ours + "conn", false},
		{"internal/command/a.go", ours + "internal/refusal", true},
		{"internal/command/a.go", ours + "internal/fencing", true},
		{"internal/fencing/a.go", "time", true},
		{"internal/fencing/a.go", ours + "conn", false},
		{"internal/mutants/a.go", "os/exec", true},
		{"internal/mutants/a.go", ours + "internal/engine", false},
		{"internal/fleet/a.go", ours + "quorum", true},
		{"internal/fleet/a.go", "golang.org/x/sys/unix", false},
		{"redlock.go", ours + "internal/group", true},
		{"internal/router/a.go", ours + "internal/group", true},
		{"internal/group/a.go", ours + "internal/router", false},
		{"redlock.go", ours + "internal/testkit/cluster", false},
		{"redlock.go", ours + "conn/conntest", false},
		{"conn/a.go", ours + "internal/fakeredis", false},
		{"conn/conntest/a.go", ours + "internal/fakeredis", true},
		{"conn/conntest/a.go", "github.com/tidwall/redcon", false},
		{"internal/testkit/a.go", ours + "conn/conntest", false},
		{"internal/engine/a.go", ours + "conn", true},
		{"internal/engine/a.go", ours + "internal/group", false},
		{"internal/engine/a.go", ours + "internal/fakeredis", false},
		{"internal/engine/a.go", module, false},
		{"internal/token/a.go", "crypto/rand", true},
		{"internal/token/a.go", "math/rand", false},
		{"internal/token/a.go", "math/rand/v2", false},
		{"internal/fakeredis/a.go", "github.com/stretchr/testify/require", false},
		{"internal/testkit/cluster/a.go", ours + "internal/fakeredis", true},
		{"bench/main.go", ours + "internal/group", false},
		{"internal/cmd/redlock/a.go", ours + "internal/embedded", true},
		{"internal/cmd/redlock/a.go", ours + "internal/fakeredis", false},
		{"internal/frontend/a.go", ours + "internal/fakeredis", false},
		{"internal/group/a.go", ours + "internal/frontend", false},
		{"internal/fence/a.go", ours + "internal/group", false},
		{"newroom/a.go", ours + "resp", false},
	} {
		src := fmt.Sprintf("package p\n\nimport (\n\t_ %q\n\tx %q\n)\n", "fmt", c.imports)
		problems := checkImports(file{path: c.path, src: []byte(src)})
		require.Equal(t, c.ok, len(problems) == 0, "%s imports %s: %q", c.path, c.imports, problems)
	}
}
