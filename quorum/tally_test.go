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

// TestTallyAllNodes runs the plain rounds for every possible n: the quorum-th
// grant wins, the refusal after the last tolerated one loses, no vote earlier.
func TestTallyAllNodes(t *testing.T) {
	for n := 1; n <= quorum.MaxNodes; n++ {
		var tally quorum.Tally
		tally.Reset(first(n))
		for node := range n {
			want := quorum.Pending
			if node+1 >= quorum.Size(n) {
				want = quorum.Won
			}
			require.Equal(t, want, tally.Record(node, quorum.Granted), "grant %d of %d nodes", node+1, n)
		}
		require.Equal(t, n, tally.Count(quorum.Granted))

		for _, outcome := range []quorum.Outcome{quorum.Denied, quorum.Failed} {
			tally.Reset(first(n))
			for node := n - 1; node >= 0; node-- {
				want := quorum.Pending
				if n-node > n-quorum.Size(n) {
					want = quorum.Lost
				}
				require.Equal(t, want, tally.Record(node, outcome), "%v by %d of %d nodes", outcome, n-node, n)
			}
		}
	}
}
