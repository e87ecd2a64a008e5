package nemesis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFaults: a seed repeats its faults; they lie within the run; one of a minority leaves each client a quorum.
func TestFaults(t *testing.T) {
	p := Plan{Mix: "every", Length: 50 * time.Second, Scale: 1, Groups: [][]int{{11, 12, 13, 14, 15}}, Clients: []int{21, 22, 23, 24}, Gap: time.Second, AtMost: 2}
	seen := map[string]bool{}
	for p.Seed = range 200 {
		faults, err := Faults(p)
		require.NoError(t, err)
		again, err := Faults(p)
		require.NoError(t, err)
		require.Len(t, again, len(faults))
		for i, f := range faults {
			assert.Equal(t, f.Fault, again[i].Fault)
			assert.Equal(t, f.At, again[i].At)
			assert.LessOrEqual(t, f.At+f.For, p.Length)
			assert.NotEmpty(t, f.Hit)
			seen[f.Kind] = true
		}
	}
	for kind := range kinds {
		assert.True(t, seen[kind], kind)
	}
	_, err := Faults(Plan{Mix: "cuts"})
	assert.ErrorContains(t, err, `"cuts"`)
}
