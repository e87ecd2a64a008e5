package archtest

import (
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

// banned are words found nowhere in the Go files, and bannedNames those in no name: comments are
// technical English, and a name says what is done.
var (
	banned      = map[string]bool{"whoever": true, "whatever": true, "somebody": true, "nobody": true}
	bannedNames = regexp.MustCompile(`^[tT]ells?($|[A-Z])|Tells?($|[A-Z])`)
)

// wrongNames returns a predicate of names: those with a banned word, or with one of the last column of the glossary (one
// word for one meaning).
func wrongNames(t *testing.T) func(name string) bool {
	page, err := fs.ReadFile(repository, "internal/DESIGN.md")
	require.NoError(t, err)
	_, glossary, found := strings.Cut(string(page), "\n| word | meaning | not |\n|---|---|---|\n")
	require.True(t, found)
	glossary, _, _ = strings.Cut(glossary, "\n\n")
	var words []string
	for row := range strings.SplitSeq(glossary, "\n") {
		columns := strings.Split(strings.Trim(row, "|"), "|")
		require.Len(t, columns, 3, row)
		for word := range strings.FieldsFuncSeq(columns[2], func(r rune) bool { return r == ',' || r == ' ' }) {
			words = append(words, word)
		}
	}
	require.NotEmpty(t, words)
	var parts []string // of camelCase: at the beginning of a name, and later
	for _, word := range words {
		parts = append(parts, "^"+word, strings.ToUpper(word[:1])+word[1:])
	}
	synonyms := regexp.MustCompile(`(` + strings.Join(parts, "|") + `)(s|ed)?($|[A-Z_])`)
	known := map[string]bool{}
	return func(name string) bool {
		if _, isKnown := known[name]; !isKnown {
			known[name] = bannedNames.MatchString(name) || synonyms.MatchString(name)
		}
		return known[name]
	}
}

// wordProblems returns file:line of each banned word.
func wordProblems(f file, isWrong func(name string) bool) (problems []string) {
	fset := token.NewFileSet()
	source := fset.AddFile(f.path, -1, len(f.src))
	var s scanner.Scanner
	s.Init(source, f.src, nil, scanner.ScanComments)
	for {
		at, kind, text := s.Scan()
		switch {
		case kind == token.EOF:
			return problems
		case kind == token.IDENT && isWrong(text):
			problems = append(problems, fmt.Sprintf("%v: name %s: the glossary of internal/DESIGN.md has another word for it", source.Position(at), text))
		}
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if banned[strings.ToLower(word)] {
				problems = append(problems, fmt.Sprintf("%v: %q: name who or what it is", source.Position(at), word))
			}
		}
	}
}

func TestWords(t *testing.T) {
	isWrong := wrongNames(t)
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f.path, "archtest/words_test.go") {
			continue
		}
		for _, problem := range wordProblems(f, isWrong) {
			t.Error(problem)
		}
	}
	src := "package p\n\n// Whatever it is, nobody asks.\nvar tellAll, hotel, stellar, guardAll, isGuarded, safeguards int\n"
	require.Len(t, wordProblems(file{path: "a.go", src: []byte(src)}, isWrong), 5)
}
