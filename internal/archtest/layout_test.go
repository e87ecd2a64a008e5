package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// topLevel is everything that may stand at the root beside tests and dotfiles
// (.ci is one). A user who opens the repository sees the whole house at once.
var topLevel = []string{
	"go.mod", "go.sum",
	"resp", "conn", "quorum", "redlock.go", "bench", "internal", "testdata",
	"README.md", "LICENSE", "CHANGELOG.md",
}

// checkTopLevel returns the names that do not belong at the root.
func checkTopLevel(names []string) []string {
	var problems []string
	for _, name := range names {
		known := slices.Contains(topLevel, name) ||
			strings.HasPrefix(name, ".") || strings.HasSuffix(name, "_test.go")
		if !known {
			problems = append(problems, fmt.Sprintf("%s: unexpected at the top level", name))
		}
	}
	return problems
}

// direct is every module that go.mod may require itself, and must. Whatever is
// added here ends up in the go.sum of every user.
var direct = []string{bytebufferpool, redcon, testify}

// checkRequirements compares the direct requirements of a go.mod with the list.
func checkRequirements(gomod string) []string {
	var problems []string
	have := requirements(gomod)
	for _, name := range have {
		if !slices.Contains(direct, name) {
			problems = append(problems, fmt.Sprintf("go.mod: requires %s", name))
		}
	}
	for _, name := range direct {
		if !slices.Contains(have, name) {
			problems = append(problems, fmt.Sprintf("go.mod: does not require %s", name))
		}
	}
	return problems
}

// requirements returns the modules that a go.mod requires without the comment
// "// indirect".
func requirements(gomod string) []string {
	var names []string
	block := false
	for line := range strings.Lines(gomod) {
		code, comment, _ := strings.Cut(line, "//")
		words := strings.Fields(strings.ReplaceAll(code, "(", " ( "))
		if len(words) == 0 {
			continue
		}
		switch {
		case block && words[0] == ")":
			block = false
			continue
		case block:
		case words[0] != "require":
			continue
		case len(words) > 1 && words[1] == "(":
			block = true
			continue
		default:
			words = words[1:]
		}
		indirect := strings.HasPrefix(strings.TrimSpace(comment), "indirect")
		if len(words) > 0 && !indirect {
			names = append(names, strings.Trim(words[0], `"`+"`"))
		}
	}
	return names
}

func TestCheckTopLevel(t *testing.T) {
	require.Empty(t, checkTopLevel(topLevel))
	require.Empty(t, checkTopLevel([]string{".git", ".ci", ".gitattributes", "redlock_test.go", "example_test.go"}))
	for _, name := range []string{"util", "pkg", "client.go", "test.go", "main", "go.work", "redlock.test", "cpu.prof", "readme.md", "vendor"} {
		require.Len(t, checkTopLevel([]string{"resp", name}), 1, name)
	}
}

func TestCheckRequirements(t *testing.T) {
	const good = `module m

go 1.24

require (
	github.com/stretchr/testify v1.12.1
	github.com/tidwall/redcon v1.6.2
	github.com/valyala/bytebufferpool v1.0.0
)

require (
	github.com/tidwall/match v1.1.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect; of testify
)

require github.com/tidwall/btree v1.1.0 // indirect

exclude example.com/other v1.0.0
`
	require.Empty(t, checkRequirements(good))
	for name, bad := range map[string]string{
		"one more, in a line":    good + "require golang.org/x/sys v0.1.0\n",
		"one more, in quotes":    good + "require \"golang.org/x/sys\" v0.1.0\n",
		"one more, in a block":   good + "require(\n\tgolang.org/x/sys v0.1.0\n)\n",
		"indirect become direct": strings.Replace(good, "v1.1.1 // indirect", "v1.1.1", 1),
		"another comment":        strings.Replace(good, "v1.1.1 // indirect", "v1.1.1 // not indirect", 1),
		"one less":               strings.Replace(good, "\tgithub.com/tidwall/redcon v1.6.2\n", "", 1),
		"direct become indirect": strings.Replace(good, "redcon v1.6.2", "redcon v1.6.2 // indirect", 1),
		"another major version":  strings.Replace(good, "redcon v1.6.2", "redcon/v2 v2.0.0", 1),
	} {
		require.NotEmpty(t, checkRequirements(bad), name)
	}
	require.Len(t, checkRequirements(""), len(direct))
}
