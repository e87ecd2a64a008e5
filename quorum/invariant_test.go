package quorum_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/quorum"
)

// TestSize is mutual exclusion: a node grants to one client at most, and two quorums share a node.
func TestSize(t *testing.T) {
	want := []int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 7: 4, 8: 5, 9: 5, 64: 33}
	for n, size := range want {
		if size != 0 {
			require.Equal(t, size, quorum.Size(n), "n=%d", n)
		}
	}
	for n := 1; n <= quorum.MaxNodes; n++ {
		size := quorum.Size(n)
		require.Greater(t, 2*size, n, "two quorums of %d nodes share one", n)
		require.LessOrEqual(t, 2*(size-1), n, "no smaller number does")
		require.LessOrEqual(t, size, n)
	}
}

// TestNames pins the texts, which end up in logs, and the numbers, whose zero
// must stay free.
func TestNames(t *testing.T) {
	require.Equal(t, "granted denied failed", quorum.Granted.String()+" "+quorum.Denied.String()+" "+quorum.Failed.String())
	require.Equal(t, "pending won lost", quorum.Pending.String()+" "+quorum.Won.String()+" "+quorum.Lost.String())
	require.Equal(t, "outcome(0) outcome(4)", quorum.Outcome(0).String()+" "+quorum.Outcome(4).String())
	require.Equal(t, "verdict(0) verdict(4)", quorum.Verdict(0).String()+" "+quorum.Verdict(4).String())
}
