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
	case parts[0] == "internal" && len(parts) > 2 && parts[1] != "cmd":
		return strings.Join(parts[:3], "/")
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
	"redlock":                           {"bench", "internal/test/testkit", "internal/server/grants", "internal/server/frontend", "internal/cmd"},
	"internal/server/session":           {"internal/server/frontend", "internal/cmd"},
	"internal/server/grants":            {"internal/server/frontend"},
	"internal/server/frontend":          {"internal/cmd", "bench"},
	"internal/test/embedded":            {"internal/cmd"}, // its masters are those of tests, for trying and nothing else
	"internal/cmd":                      {},
	"bench":                             {},
	"internal/client/router":            {"redlock"},
	"internal/client/group":             {"redlock", "internal/client/router"},
	"conn/conntest":                     {}, // or a user of the library compiles a server
	"internal/test/fakeredis":           {"bench", "internal/test/testkit", "conn/conntest", "internal/test/embedded"},
	"internal/test/realredis":           {"bench", "internal/test/testkit"},
	"internal/base/knobs":               {"redlock", "internal/client/group", "bench", "internal/test/testkit"},
	"internal/test/testkit":             {},
	"github.com/tidwall/redcon":         {"bench", "internal/test/fakeredis"},
	"internal/server/luascript":         {"internal/server/frontend"},
	"github.com/stretchr/testify":       {"bench", "internal/test/testkit"},
	"github.com/valyala/bytebufferpool": {"bench", "internal/client/fleet"},
}

// pure rooms import nothing of the project but these.
var pure = map[string][]string{
	"resp":                      {},
	"quorum":                    {},
	"conn":                      {"internal/wire/refusal"},
	"internal/client/fleet":     {"conn", "resp", "quorum", "internal/wire/refusal", "internal/base/clock", "github.com/valyala/bytebufferpool"}, // knows no locks: what it asks and what the answers mean is opaque
	"internal/wire/refusal":     {"resp"},
	"internal/wire/command":     {"resp", "quorum", "internal/wire/refusal", "internal/rules/fencing"},
	"internal/rules/fencing":    {"quorum"},
	"internal/test/mutants":     {},
	"internal/base/knobs":       {},
	"internal/rules/renewal":    {},
	"internal/rules/contention": {"quorum", "internal/base/clock"},
	"internal/server/luascript": {},
	"internal/base/metrics":     {},
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
		if from == "internal/wire/token" && strings.HasPrefix(name, "math/rand") {
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
		{"resp/a_test.go", ours + "internal/test/fakeredis", true},
		{"quorum/sub/a.go", ours + "conn", false},
		{"conn/a.go", ours + "internal/wire/refusal", true},
		{"internal/client/fleet/a.go", ours + "resp", true},
		{"internal/client/fleet/a.go", ours + "internal/client/engine", false},
		{"internal/client/fleet/a.go", ours + "internal/wire/command", false},
		{"internal/wire/command/a.go", ours + "conn", false},
		{"internal/wire/command/a.go", ours + "internal/wire/refusal", true},
		{"internal/wire/command/a.go", ours + "internal/rules/fencing", true},
		{"internal/rules/fencing/a.go", "time", true},
		{"internal/rules/fencing/a.go", ours + "conn", false},
		{"internal/test/mutants/a.go", "os/exec", true},
		{"internal/test/mutants/a.go", ours + "internal/client/engine", false},
		{"internal/client/fleet/a.go", ours + "quorum", true},
		{"internal/client/fleet/a.go", "golang.org/x/sys/unix", false},
		{"redlock.go", ours + "internal/client/group", true},
		{"internal/client/router/a.go", ours + "internal/client/group", true},
		{"internal/client/group/a.go", ours + "internal/client/router", false},
		{"redlock.go", ours + "internal/test/testkit/cluster", false},
		{"redlock.go", ours + "conn/conntest", false},
		{"conn/a.go", ours + "internal/test/fakeredis", false},
		{"conn/conntest/a.go", ours + "internal/test/fakeredis", true},
		{"conn/conntest/a.go", "github.com/tidwall/redcon", false},
		{"internal/test/testkit/a.go", ours + "conn/conntest", false},
		{"internal/client/engine/a.go", ours + "conn", true},
		{"internal/client/engine/a.go", ours + "internal/client/group", false},
		{"internal/client/engine/a.go", ours + "internal/test/fakeredis", false},
		{"internal/client/engine/a.go", module, false},
		{"internal/wire/token/a.go", "crypto/rand", true},
		{"internal/wire/token/a.go", "math/rand", false},
		{"internal/wire/token/a.go", "math/rand/v2", false},
		{"internal/test/fakeredis/a.go", "github.com/stretchr/testify/require", false},
		{"internal/test/testkit/cluster/a.go", ours + "internal/test/fakeredis", true},
		{"bench/main.go", ours + "internal/client/group", false},
		{"internal/cmd/redlock/a.go", ours + "internal/test/embedded", true},
		{"internal/cmd/redlock/a.go", ours + "internal/test/fakeredis", false},
		{"internal/server/frontend/a.go", ours + "internal/test/fakeredis", false},
		{"internal/client/group/a.go", ours + "internal/server/frontend", false},
		{"internal/client/fence/a.go", ours + "internal/client/group", false},
		{"newroom/a.go", ours + "resp", false},
	} {
		src := fmt.Sprintf("package p\n\nimport (\n\t_ %q\n\tx %q\n)\n", "fmt", c.imports)
		problems := checkImports(file{path: c.path, src: []byte(src)})
		require.Equal(t, c.ok, len(problems) == 0, "%s imports %s: %q", c.path, c.imports, problems)
	}
}
