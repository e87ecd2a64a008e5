package frontend

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// refused lists commands known only for a clearer refusal.
var refused = map[string]bool{"SETEX": true, "PSETEX": true, "CLUSTER": true, "POST": true, "HOST:": true}

// TestEachCommand: the page for clients names each command, and a test plays it.
func TestEachCommand(t *testing.T) {
	page, err := os.ReadFile("CLIENTS.md")
	require.NoError(t, err)
	var tests []byte
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		if name != "page_test.go" {
			tests = append(tests, text...)
		}
	}
	for name := range commands {
		word := regexp.MustCompile(`(^|[^A-Z.])` + regexp.QuoteMeta(name) + `($|[^A-Z])`)
		if !refused[name] {
			require.True(t, word.Match(page), "%s is in no table of CLIENTS.md: clients read there which commands they have; add a line, with its reply", name)
			require.True(t, word.Match(tests), "no test of this package sends %s: add its usual replies to commands_test.go", name)
		}
	}
}
