package quorum_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/quorum"
)

// TestNoTwoWinners is mutual exclusion. Each node grants to one of two clients
// at most; over every way in which n nodes can choose, never do both win.
func TestNoTwoWinners(t *testing.T) {
	for n := 1; n <= 9; n++ {
		ways := 1
		for range n {
			ways *= 3
		}
		wins := 0
		for way := range ways {
			a, b := contest(n, func(node int) int { return way / pow3[node] % 3 })
			if a == quorum.Won && b == quorum.Won {
				t.Fatalf("two winners: n=%d, way %d", n, way)
			}
			if a == quorum.Won || b == quorum.Won {
				wins++
			}
		}
		require.NotZero(t, wins, "no round can be won with %d nodes", n)
	}
}

var pow3 = [...]int{1, 3, 9, 27, 81, 243, 729, 2187, 6561}

// contest lets every node choose a client: 0 and 1 are granted by it and the
// other is denied, 2 is a node that fails for both.
func contest(n int, choose func(node int) int) (a, b quorum.Verdict) {
	var ta, tb quorum.Tally
	ta.Reset(first(n))
	tb.Reset(first(n))
	for node := range n {
		switch choose(node) {
		case 0:
			ta.Record(node, quorum.Granted)
			tb.Record(node, quorum.Denied)
		case 1:
			ta.Record(node, quorum.Denied)
			tb.Record(node, quorum.Granted)
		default:
			ta.Record(node, quorum.Failed)
			tb.Record(node, quorum.Failed)
		}
	}
	return ta.Verdict(), tb.Verdict()
}

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
