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

// TestTallyExhaustive plays every sequence of n votes, in any order, with any
// outcomes and with repetitions, for every n up to four.
func TestTallyExhaustive(t *testing.T) {
	for n := 1; n <= 4; n++ {
		o := oracle{n: n}
		var tally quorum.Tally
		tally.Reset(first(n))
		leaves := 0
		var play func(tally quorum.Tally, depth int)
		play = func(tally quorum.Tally, depth int) {
			if diff := o.differs(&tally); diff != "" {
				t.Fatal(diff)
			}
			if depth == n {
				leaves++
				return
			}
			for node := range n {
				for _, outcome := range outcomes {
					next := tally
					next.Record(node, outcome)
					o.record(node, outcome)
					play(next, depth+1)
					o.votes = o.votes[:len(o.votes)-1]
				}
			}
		}
		play(tally, 0)
		want := 1
		for range n {
			want *= 3 * n
		}
		require.Equal(t, want, leaves)
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
