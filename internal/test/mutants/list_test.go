package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
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
	for _, d := range defects {
		for _, h := range d.hunks {
			_, err := tree{root: root}.apply(h)
			assert.NoError(t, err, "the code of %s has changed: write its lines in defects.txt anew, and go run ./internal/test/mutants -run %[1]s", d.name)
		}
		for _, test := range d.tests {
			dir, err := tree{root: root}.dirOf(test.pkg)
			require.NoError(t, err, d.name)
			for _, name := range regexp.MustCompile(`\^(\w+)`).FindAllStringSubmatch(strings.ReplaceAll(test.pattern, "/^", "/"), -1) {
				files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
				require.NoError(t, err)
				assert.True(t, slices.ContainsFunc(files, func(file string) bool {
					text, err := os.ReadFile(file)
					return err == nil && strings.Contains(string(text), "\nfunc "+name[1])
				}), "%s names a test that %s has not: %s", d.name, test.pkg, name[1])
			}
		}
	}
}
