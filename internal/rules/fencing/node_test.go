package fencing

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	self  = Me{Fleet: "f3", Run: "r1"}
	later = Me{Fleet: "f3", Run: "r2"}
	other = Me{Fleet: "f5", Run: "r1"}
)

// asked is an acquire of a free key.
func (n *Node) asked(me Me) Answer { return n.Acquire(me, "a", Block{1, 1}, false) }

func voting(floor Token, tokens ...KeyToken) Node {
	return Node{Marker: Marker{Phase: Voting, Me: self}, Floor: floor, Tokens: tokens}
}

// TestForgetting: the answers and contents of a node without a vote, step by step. TestScripts
// compares all else of Node with the scripts.
func TestForgetting(t *testing.T) {
	n := Node{}
	require.Equal(t, Answer{Code: Amnesia}, n.asked(self))
	require.Equal(t, Answer{Code: Amnesia}, n.Rejoin(self, "", 7, "f3"), "no marker is no nonce")
	first := n.Notice(self, "n", 17)
	require.Equal(t, Answer{Code: Amnesia, Text: "n.17"}, first)
	require.Equal(t, first, n.Notice(self, "m", 18), "the one that is there")
	require.Equal(t, first, n.asked(self), "all learn it")
	require.Equal(t, first, n.Read(self), "no client learns from it")
	require.Equal(t, first, n.Raise(self, 1))
	require.Equal(t, first, n.Extend(self, true))
	require.Equal(t, first, n.Rejoin(self, "m.18", 7, "f3"))
	require.Equal(t, first, n.Notice(other, "n", 19), "a nonce belongs to no fleet")
	require.Equal(t, Invalid, n.Rejoin(self, "n.17", MaxToken+1, "f3").Code)
	require.Equal(t, Node{Marker: Marker{Provisional, Me{Run: "r1"}, "n.17"}}, n, "and nothing was written")

	require.Equal(t, OK, n.Rejoin(self, "n.17", 7, "f3").Code)
	require.Equal(t, Answer{Code: Active}, n.Rejoin(self, "n.17", 70, "f3"))
	require.Equal(t, Answer{Code: Active}, n.Notice(self, "n", 20))
	require.Equal(t, voting(7), n, "a repeated REJOIN writes nothing")

	// A state back from a file has tokens, and no vote.
	n = voting(100, KeyToken{"a", 120})
	require.Equal(t, Answer{Code: Amnesia, Text: "n.21"}, n.Notice(later, "n", 21))
	require.Equal(t, OK, n.Rejoin(later, "n.21", 50, "f3").Code)
	require.Equal(t, Node{Marker{Voting, later, ""}, 100, []KeyToken{{"a", 120}}}, n, "what it has is kept")

	// A node that forgets nothing is resumed, if it had a vote; it shows no word of others.
	n = voting(100, KeyToken{"a", 120})
	require.Equal(t, Answer{Code: OK, Token: 120, Text: "active:f3:r1"}, n.Show(later))
	require.Equal(t, Foreign, n.Resume(other).Code)
	require.Equal(t, Foreign, n.Show(other).Code)
	require.Equal(t, OK, n.Resume(later).Code)
	require.Equal(t, Node{Marker{Voting, later, ""}, 100, []KeyToken{{"a", 120}}}, n)
	require.Equal(t, Active, n.Resume(later).Code)
	n = Node{}
	require.Equal(t, Answer{Code: OK}, n.Show(self))
	n.Notice(self, "n", 1)
	for _, run := range []Me{self, later} {
		require.Equal(t, Amnesia, n.Resume(run).Code, "it was in quarantine")
	}

	// The same NOTICE in two lives makes two nonces.
	n = Node{}
	require.Equal(t, "n.22", n.Notice(self, "n", 22).Text)
	n = Node{}
	require.Equal(t, "n.23", n.Notice(self, "n", 23).Text)
}
