package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// repository is the root of the module.
var repository = os.DirFS("../../..")

const (
	maxLines     = 500 // where a file stops being about one thing
	maxAPI       = 900 // of redlock.go, which is the whole public API
	maxRootTests = 5
)

// topLevel is everything at the root beside a few tests and dotfiles. A user who opens the
// repository sees the whole house at once.
var topLevel = []string{
	"go.mod", "go.sum",
	"resp", "conn", "quorum", "redlock.go", "bench", "internal", "README.md",
	"LICENSE", "CHANGELOG.md",
}

// direct is every module required by go.mod itself. An addition here ends up in the go.sum of every user.
var direct = []string{"github.com/stretchr/testify", "github.com/tidwall/redcon", "github.com/valyala/bytebufferpool"}

// file is a Go file of the repository.
type file struct {
	path   string // relative to the root, with slashes
	src    []byte
	nested bool // in a nested module
}

// goFiles returns all Go files, but for those in directories skipped by the go command too.
func goFiles(t *testing.T) (files []file) {
	nested := "\x00" // the walk's nested module, with a slash at its end
	require.NoError(t, fs.WalkDir(repository, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := entry.Name(); entry.IsDir() && name != "." {
			if base == "testdata" || base[0] == '.' || base[0] == '_' {
				return fs.SkipDir
			}
			if _, err := fs.Stat(repository, path.Join(name, "go.mod")); err == nil && !strings.HasPrefix(name, nested) {
				nested = name + "/"
			}
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		src, err := fs.ReadFile(repository, name)
		files = append(files, file{name, src, strings.HasPrefix(name, nested)})
		return err
	}))
	return files
}

func TestFiles(t *testing.T) {
	seen := map[string]bool{}
	tokens := []string{}
	for _, f := range goFiles(t) {
		seen[f.path] = true
		for _, problem := range append(checkImports(f), unnamedFields(t, f)...) {
			t.Error(problem)
		}
		most, mend := maxLines, "one noun a file; move another one out"
		if f.path == "redlock.go" {
			most, mend = maxAPI, "it has types and one-line methods; decisions belong to a room, and figures in comments to a DESIGN.md"
		}
		if lines := bytes.Count(f.src, []byte("\n")); lines > most {
			t.Errorf("%s: %d lines, more than %d: %s", f.path, lines, most, mend)
		}
		if strings.HasPrefix(f.path, "internal/wire/token/") && !strings.HasSuffix(f.path, "_test.go") {
			tokens = append(tokens, importsOf(f)...)
		}
	}
	// A walk that goes astray finds nothing, and nothing is always in order.
	require.True(t, seen["quorum/tally.go"] && seen["bench/main.go"] && seen["internal/test/archtest/layout_test.go"], "files are missing")
	require.Contains(t, tokens, "crypto/rand", "where tokens come from")
	require.Len(t, unnamedFields(t, file{src: []byte("package p\nvar a, b = T{1, 2, 3, 4, 5}, []int{1, 2, 3, 4, 5}\n")}), 1)
}

// unnamedFields finds struct literals of five or more unnamed fields: the compiler does not notice
// two that change places.
func unnamedFields(t *testing.T, f file) (problems []string) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, f.path, f.src, parser.SkipObjectResolution)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok || len(literal.Elts) < 5 {
			return true
		}
		switch literal.Type.(type) {
		case *ast.Ident, *ast.SelectorExpr:
			if _, named := literal.Elts[0].(*ast.KeyValueExpr); !named {
				problems = append(problems, fmt.Sprintf("%v: %d fields without names: name them, for the compiler does not notice two that change places", files.Position(n.Pos()), len(literal.Elts)))
			}
		}
		return true
	})
	return problems
}

func TestTopLevel(t *testing.T) {
	entries, err := fs.ReadDir(repository, ".")
	require.NoError(t, err)
	tests, seen := 0, []string{}
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case strings.HasSuffix(name, "_test.go"):
			tests++
		case name[0] != '.':
			seen = append(seen, name)
		}
	}
	require.ElementsMatch(t, topLevel, seen, "the root has few names: put it below bench or internal")
	require.LessOrEqual(t, tests, maxRootTests, "black-box tests live in internal/test/e2e")
}

func TestRequirements(t *testing.T) {
	gomod, err := fs.ReadFile(repository, "go.mod")
	require.NoError(t, err)
	require.Equal(t, direct, requirements(string(gomod)), "three dependencies: one more ends up in the go.sum of every user; a nested module below bench may have it")
	require.Equal(t, []string{"a.b/c", "d.e/f"}, requirements("module m\nrequire a.b/c v1.0.0\nrequire (\n\tx.y/z v1.0.0 // indirect\n\td.e/f v2.0.0\n)\n"))
}

// requirements returns the modules required by a go.mod without the comment "// indirect", sorted.
func requirements(gomod string) (names []string) {
	for line := range strings.Lines(gomod) {
		words := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(words) >= 2 && strings.HasPrefix(words[1], "v") && !strings.Contains(line, "// indirect") {
			names = append(names, words[0])
		}
	}
	return slices.Sorted(slices.Values(names))
}
