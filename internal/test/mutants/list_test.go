package main

import (
	"os"
	"path/filepath"
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
	for _, d := range defects {
		for _, h := range d.hunks {
			_, err := tree{root: root}.apply(h)
			assert.NoError(t, err, "the code of %s has changed: write its lines in defects.txt anew, and go run ./internal/test/mutants -run %[1]s", d.name)
		}
		for _, test := range d.tests {
			_, err := tree{root: root}.dirOf(test.pkg)
			assert.NoError(t, err, d.name)
		}
	}
}
