package quorum_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/quorum"
)

var outcomes = []quorum.Outcome{quorum.Granted, quorum.Denied, quorum.Failed}

// first is a majority of n nodes, numbered 0 to n-1.
func first(n int) *quorum.Config { return quorum.Majority(quorum.First(n)) }

// verdictOf is that of the votes of one list, by counting them.
func verdictOf(list quorum.Set, vote func(node int) quorum.Outcome) quorum.Verdict {
	nodes, granted, refused := 0, 0, 0
	for node := 0; list>>node != 0; node++ {
		if list>>node&1 == 0 {
			continue
		}
		nodes++
		switch vote(node) {
		case quorum.Granted:
			granted++
		case quorum.Denied, quorum.Failed:
			refused++
		}
	}
	switch {
	case 2*granted > nodes:
		return quorum.Won
	case 2*(nodes-refused) <= nodes:
		return quorum.Lost
	}
	return quorum.Pending
}

// FuzzTally reads the number of nodes less one from the first byte and a vote from each pair after it, a node (as a
// signed byte, so that some are outside the round) and an outcome (so that some are none). It counts the first proper
// vote of each node. Of all numbers of nodes, all vote alike at first. More of the corpus is in testdata/fuzz.
func FuzzTally(f *testing.F) {
	for n := range quorum.MaxNodes {
		for _, o := range outcomes {
			script := []byte{byte(n)}
			for node := range n + 1 {
				script = append(script, byte(node), byte(o))
			}
			f.Add(script)
		}
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) == 0 || len(script) > 1+4*quorum.MaxNodes {
			return
		}
		n := int(script[0])%quorum.MaxNodes + 1
		votes := make([]quorum.Outcome, n)
		vote := func(node int) quorum.Outcome { return votes[node] }
		var tally quorum.Tally
		tally.Reset(first(quorum.MaxNodes))
		for node := range quorum.MaxNodes { // nothing of a round shows in the next
			tally.Record(node, outcomes[node%3])
		}
		tally.Reset(first(n))
		for left := script[1:]; len(left) >= 2; left = left[2:] {
			node, o := int(int8(left[0])), quorum.Outcome(left[1])
			if node >= 0 && node < n && votes[node] == 0 && slices.Contains(outcomes, o) {
				votes[node] = o
			}
			before := tally.Verdict()
			got := tally.Record(node, o)
			require.True(t, before == quorum.Pending || got == before, "from %v to %v, n=%d, votes %v", before, got, n, votes)
			require.Equal(t, verdictOf(quorum.First(n), vote), got, "n=%d, votes %v", n, votes)
			var counts [5]int
			for node := range votes {
				counts[votes[node]]++
				require.Equal(t, votes[node], tally.Outcome(node))
			}
			for o, count := range counts {
				require.Equal(t, count, tally.Count(quorum.Outcome(o)), "n=%d, votes %v", n, votes)
			}
			require.Zero(t, tally.Outcome(-1)+tally.Outcome(n))
		}
	})
}

// TestSize is mutual exclusion: a node grants to one client at most, and two quorums share a node.
func TestSize(t *testing.T) {
	for n := 1; n <= quorum.MaxNodes; n++ {
		size := quorum.Size(n)
		require.Greater(t, 2*size, n, "two quorums of %d nodes share one", n)
		require.LessOrEqual(t, 2*(size-1), n, "no smaller number does")
		require.LessOrEqual(t, size, n)
	}
}

// TestNames pins the texts, which end up in logs, and the numbers, whose zero must stay free.
func TestNames(t *testing.T) {
	require.Equal(t, "granted denied failed", quorum.Granted.String()+" "+quorum.Denied.String()+" "+quorum.Failed.String())
	require.Equal(t, "pending won lost", quorum.Pending.String()+" "+quorum.Won.String()+" "+quorum.Lost.String())
	require.Equal(t, "outcome(0) outcome(4)", quorum.Outcome(0).String()+" "+quorum.Outcome(4).String())
	require.Equal(t, "verdict(0) verdict(4)", quorum.Verdict(0).String()+" "+quorum.Verdict(4).String())
}

// TestAllocatesNothing runs all that a lock needs of this package. The race detector allocates on its own.
func TestAllocatesNothing(t *testing.T) {
	if testkit.Race {
		t.Skip("it counts allocations")
	}
	sum, configs := 0, []*quorum.Config{first(9), quorum.Joint(quorum.Majority(0b0111), quorum.Majority(0b1110))}
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		var tally quorum.Tally
		for _, c := range configs {
			tally.Reset(c)
			for node := range c.Nodes().All() {
				sum += int(tally.Record(node, outcomes[node%3]))
				sum += len(tally.Outcome(node).String()) + len(tally.Verdict().String())
			}
			sum += tally.Count(quorum.Granted) + tally.Count(0)
			sum += int(quorum.Until(time.Second, time.Duration(sum)))
		}
	}))
}

// TestSharedSet: the one that has changed the set is told so.
func TestSharedSet(t *testing.T) {
	var s quorum.SharedSet
	require.True(t, s.Add(63))
	require.False(t, s.Add(63))
	require.True(t, s.Add(0))
	require.True(t, s.Has(0))
	require.False(t, s.Has(1))
	require.True(t, s.Remove(0))
	require.False(t, s.Remove(0))
	require.Equal(t, quorum.Only(63), s.Swap(quorum.Only(2)))
	require.Equal(t, quorum.Only(2), s.Load())
	for node := range quorum.Everything.All() {
		if node == 3 {
			break // the rest is not asked for
		}
	}
	require.Equal(t, quorum.MaxNodes, quorum.Set(0).Least())
}
