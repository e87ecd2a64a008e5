package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// banned are words that stand nowhere in the Go files, and bannedNames those that are part of
// no name: comments are technical English, and a name says what is done.
var (
	banned      = regexp.MustCompile(`(?i)\b(who|what)ever\b|\b(some|no)body\b`)
	bannedNames = regexp.MustCompile(`^[tT]ells?($|[A-Z])|Tells?($|[A-Z])`)
)

// wordProblems returns file:line of each banned word.
func wordProblems(f file) (problems []string) {
	for _, at := range banned.FindAllIndex(f.src, -1) {
		line := 1 + bytes.Count(f.src[:at[0]], []byte("\n"))
		problems = append(problems, fmt.Sprintf("%s:%d: %q", f.path, line, f.src[at[0]:at[1]]))
	}
	fset := token.NewFileSet()
	syntax, err := parser.ParseFile(fset, f.path, f.src, 0)
	if err != nil {
		return append(problems, err.Error())
	}
	ast.Inspect(syntax, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && bannedNames.MatchString(id.Name) {
			problems = append(problems, fmt.Sprintf("%s:%d: name %s", f.path, fset.Position(id.Pos()).Line, id.Name))
		}
		return true
	})
	return problems
}

func TestWords(t *testing.T) {
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f.path, "archtest/words_test.go") {
			continue
		}
		for _, problem := range wordProblems(f) {
			t.Error(problem)
		}
	}
	src := "package p\n\n// Whatever it is, nobody asks.\nvar tellAll, hotel, stellar int\n"
	require.Len(t, wordProblems(file{path: "a.go", src: []byte(src)}), 3)
}
