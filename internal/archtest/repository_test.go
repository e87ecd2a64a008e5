package archtest

import (
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// repository is the root of the module.
var repository = os.DirFS("../..")

// TestRepository runs every check on the real thing.
func TestRepository(t *testing.T) {
	gomod, err := fs.ReadFile(repository, "go.mod")
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(string(gomod), "module "+module+"\n"), "not the root of the module")
	files, err := goFiles(repository)
	require.NoError(t, err)
	entries, err := fs.ReadDir(repository, ".")
	require.NoError(t, err)

	// A walk that goes astray finds nothing, and nothing is always in order.
	seen := map[string]bool{}
	for _, f := range files {
		seen[f.path] = true
	}
	require.True(t, seen["quorum/tally.go"] && seen["internal/archtest/repository_test.go"], "files are missing")

	perFile := func(check func(file) []string) func() []string {
		return func() []string {
			var problems []string
			for _, f := range files {
				problems = append(problems, check(f)...)
			}
			return problems
		}
	}
	for name, check := range map[string]func() []string{
		"imports": perFile(checkImports),
		"length":  perFile(checkLength),
		"format":  perFile(checkFormat),
		"requirements": func() []string {
			return checkRequirements(string(gomod))
		},
		"top level": func() []string {
			var names []string
			for _, entry := range entries {
				names = append(names, entry.Name())
			}
			return checkTopLevel(names)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, problem := range check() {
				t.Error(problem)
			}
		})
	}
}
