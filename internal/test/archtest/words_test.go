package archtest

import (
	"fmt"
	"go/scanner"
	"go/token"
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

// wordProblems returns file:line of each banned word.
func wordProblems(f file) (problems []string) {
	fset := token.NewFileSet()
	source := fset.AddFile(f.path, -1, len(f.src))
	var s scanner.Scanner
	s.Init(source, f.src, nil, scanner.ScanComments)
	for {
		at, kind, text := s.Scan()
		switch {
		case kind == token.EOF:
			return problems
		case kind == token.IDENT && bannedNames.MatchString(text):
			problems = append(problems, fmt.Sprintf("%v: name %s", source.Position(at), text))
		}
		for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
			if banned[strings.ToLower(word)] {
				problems = append(problems, fmt.Sprintf("%v: %q", source.Position(at), word))
			}
		}
	}
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
