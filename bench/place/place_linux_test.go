package place

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHalves: package harness tests that servers and clients are apart.
func TestHalves(t *testing.T) {
	require.Equal(t, halves{servers: []int{0, 4}, clients: []int{1, 5}}, split([]int{0, 4, 1, 5, 2}))
	require.Empty(t, split([]int{3}))
	h := split([]int{0, 1, 2, 70})
	require.Equal(t, h, parse(h.String()))
	require.Equal(t, []int{2, 70}, maskOf(h.clients).processors())
	require.Empty(t, parse(shared))
}
