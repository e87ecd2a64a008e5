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

// wrongNames returns what to write in place of a name with a banned word, or with one of the last column of the glossary
// (one word for one meaning); "" for any other name.
func wrongNames(t *testing.T) func(name string) (mend string) {
	page, err := fs.ReadFile(repository, "internal/DESIGN.md")
	require.NoError(t, err)
	_, glossary, found := strings.Cut(string(page), "\n| word | meaning | not |\n|---|---|---|\n")
	require.True(t, found)
	glossary, _, _ = strings.Cut(glossary, "\n\n")
	var parts []string // of camelCase: at the beginning of a name, and later
	mends := map[string]string{}
	for row := range strings.SplitSeq(glossary, "\n") {
		columns := strings.Split(strings.Trim(row, "|"), "|")
		require.Len(t, columns, 3, row)
		for word := range strings.FieldsFuncSeq(columns[2], func(r rune) bool { return r == ',' || r == ' ' }) {
			parts = append(parts, "^"+word, strings.ToUpper(word[:1])+word[1:])
			mends[word] = fmt.Sprintf("%s is not a word of the glossary of internal/DESIGN.md: it has %s", word, strings.TrimSpace(columns[0]))
		}
	}
	require.NotEmpty(t, parts)
	synonyms := regexp.MustCompile(`(` + strings.Join(parts, "|") + `)(s|ed)?($|[A-Z_])`)
	known := map[string]string{}
	return func(name string) string {
		if _, isKnown := known[name]; !isKnown {
			known[name] = ""
			if found := synonyms.FindStringSubmatch(name); found != nil {
				known[name] = mends[strings.ToLower(found[1])]
			} else if bannedNames.MatchString(name) {
				known[name] = "say what is done, not that it is told"
			}
		}
		return known[name]
	}
}

// wordProblems returns file:line of each banned word.
func wordProblems(f file, mendOf func(name string) string) (problems []string) {
	fset := token.NewFileSet()
	source := fset.AddFile(f.path, -1, len(f.src))
	var s scanner.Scanner
	s.Init(source, f.src, nil, scanner.ScanComments)
	for {
		at, kind, text := s.Scan()
		switch {
		case kind == token.EOF:
			return problems
		case kind == token.IDENT && mendOf(text) != "":
			problems = append(problems, fmt.Sprintf("%v: name %s: %s", source.Position(at), text, mendOf(text)))
		}
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if banned[strings.ToLower(word)] {
				problems = append(problems, fmt.Sprintf("%v: %q: name who or what it is", source.Position(at), word))
			}
		}
	}
}

func TestWords(t *testing.T) {
	mendOf := wrongNames(t)
	for _, f := range goFiles(t) {
		if strings.HasSuffix(f.path, "archtest/words_test.go") {
			continue
		}
		for _, problem := range wordProblems(f, mendOf) {
			t.Error(problem)
		}
	}
	src := "package p\n\n// Whatever it is, nobody asks.\nvar tellAll, hotel, stellar, guardAll, isGuarded, safeguards int\n"
	require.Len(t, wordProblems(file{path: "a.go", src: []byte(src)}, mendOf), 5)
}
