package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestListFollowsTheCode: each defect can be put in. Its tests run apart.
func TestListFollowsTheCode(t *testing.T) {
	root, err := os.Getwd()
	require.NoError(t, err)
	for _, err = os.Stat(filepath.Join(root, "go.mod")); err != nil; _, err = os.Stat(filepath.Join(root, "go.mod")) {
		root = filepath.Dir(root)
	}
	defects, err := parse(theList)
	require.NoError(t, err)
	w := work{tree: tree{root: root}}
	w.functions, err = w.testFunctions()
	require.NoError(t, err)
	for _, d := range defects {
		for _, h := range d.hunks {
			_, err := w.apply(h)
			assert.NoError(t, err, "the code of %s has changed: write its lines in defects.txt anew, and go run ./internal/test/mutants -run %[1]s", d.name)
		}
		for _, named := range d.tests {
			_, err := w.dirOf(named.pkg)
			assert.NoError(t, err, d.name)
			for pattern := range strings.SplitSeq(strings.NewReplacer("(", "", ")", "").Replace(named.pattern), "|") {
				assert.NotEmpty(t, w.of(test{pkg: named.pkg, pattern: pattern}), "%s names a test that %s has not: %s", d.name, named.pkg, pattern)
			}
		}
	}
}
