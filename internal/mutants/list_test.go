package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestListFollowsTheCode: each defect can be put in. The tests that catch it run apart.
func TestListFollowsTheCode(t *testing.T) {
	list, err := os.ReadFile("defects.txt")
	require.NoError(t, err)
	defects, err := parse(string(list))
	require.NoError(t, err)
	for _, d := range defects {
		files := map[string]string{}
		for _, h := range d.hunks {
			if files[h.file] == "" {
				src, err := os.ReadFile(filepath.Join("..", "..", h.file))
				require.NoError(t, err, d.name)
				files[h.file] = string(src)
			}
			files[h.file], err = h.apply(files[h.file])
			assert.NoError(t, err, d.name)
		}
	}
}
