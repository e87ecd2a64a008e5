package harness

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeys(t *testing.T) {
	for _, length := range []int{MinKeyLen, 40} {
		seen := map[string]bool{}
		for _, worker := range keys(300, length) {
			require.Len(t, worker, keysPerWorker)
			for _, key := range worker {
				require.Len(t, key, length)
				require.False(t, seen[key], "%s is there twice", key)
				seen[key] = true
			}
		}
		require.NotEqual(t, keys(1, length)[0][0], keys(1, length)[0][0], "each cell has keys of its own")
	}
}
