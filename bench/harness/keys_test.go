package harness

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeys(t *testing.T) {
	for _, length := range []int{MinKeyLen, 40} {
		seen := map[string]bool{}
		for _, worker := range keys(Uncontended, 300, length) {
			require.Len(t, worker, keysPerWorker)
			for _, key := range worker {
				require.Len(t, key, length)
				require.False(t, seen[key], "%s is there twice", key)
				seen[key] = true
			}
		}
		hot := keys(Hot, 3, length)
		require.Len(t, hot, 3)
		require.Equal(t, hot[0], hot[2])
		require.Len(t, hot[0], 1)
		require.Len(t, hot[0][0], length)
		require.NotEqual(t, hot[0], keys(Hot, 1, length)[0], "each cell has keys of its own")
	}
}
