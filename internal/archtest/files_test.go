package archtest

import (
	"bytes"
	"fmt"
	"go/format"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxLines is where a file stops being about one thing.
const maxLines = 500

// checkLength says so when a file has too many lines. Tests count too.
func checkLength(f file) []string {
	lines := bytes.Count(f.src, []byte("\n"))
	if len(f.src) > 0 && f.src[len(f.src)-1] != '\n' {
		lines++
	}
	if lines > maxLines {
		return []string{fmt.Sprintf("%s: %d lines, more than %d", f.path, lines, maxLines)}
	}
	return nil
}

// checkFormat says so when gofmt would change a file.
func checkFormat(f file) []string {
	formatted, err := format.Source(f.src)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", f.path, err)}
	}
	if !bytes.Equal(formatted, f.src) {
		return []string{f.path + ": not formatted by gofmt"}
	}
	return nil
}

func TestCheckLength(t *testing.T) {
	lines := func(n int) []byte { return []byte(strings.Repeat("//\n", n)) }
	for _, nested := range []bool{false, true} {
		for _, path := range []string{"conn/a.go", "conn/a_test.go"} {
			require.Empty(t, checkLength(file{path, lines(500), nested}))
			require.Len(t, checkLength(file{path, lines(501), nested}), 1)
			require.Len(t, checkLength(file{path, append(lines(500), "//"...), nested}), 1)
		}
	}
	require.Empty(t, checkLength(file{path: "conn/a.go"}))
}

func TestCheckFormat(t *testing.T) {
	check := func(src string) []string { return checkFormat(file{path: "conn/a.go", src: []byte(src)}) }
	require.Empty(t, check("package p\n\nvar a = 1\n"))
	require.Len(t, check("package p\n\nvar  a = 1\n"), 1)
	require.Len(t, check("package p\n\nvar a = 1"), 1, "no newline at the end")
	require.Len(t, check("package p\r\n\r\nvar a = 1\r\n"), 1)
	require.Len(t, check("package\n"), 1, "not Go at all")
}
