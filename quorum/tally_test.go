package quorum_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/quorum"
)

// first is a majority of n nodes, numbered 0 to n-1.
func first(n int) *quorum.Config { return quorum.Majority(quorum.First(n)) }

// TestTallyResetForgets: nothing of a round shows in the next one, larger or
// smaller.
func TestTallyResetForgets(t *testing.T) {
	for _, before := range []int{1, 3, 64, 0} {
		for _, after := range []int{1, 2, 5, 64, 0} {
			var used, fresh quorum.Tally
			used.Reset(first(before))
			for node := range before {
				used.Record(node, outcomes[node%3])
			}
			used.Reset(first(after))
			fresh.Reset(first(after))
			require.Equal(t, fresh, used, "%d nodes after %d", after, before)
		}
	}
}
