package fencing

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	self  = Me{Fleet: "f3", Run: "r1"}
	later = Me{Fleet: "f3", Run: "r2"}
	other = Me{Fleet: "f5", Run: "r1"}
)

// request is an acquire of one attempt.
type request struct {
	name   string
	block  Block
	exists bool
}

func (n *Node) asked(me Me, r request) Answer { return n.Acquire(me, r.name, r.block, r.exists) }

// ask is an acquire of one token.
func ask(name string, token uint64) request { return request{name, Block{token, token}, false} }

func voting(floor uint64, tokens ...Token) Node {
	return Node{Marker: Marker{Phase: Voting, Me: self}, Floor: floor, Tokens: tokens}
}

// TestRefusals: each teaches what the next attempt needs, and writes nothing.
func TestRefusals(t *testing.T) {
	taken := ask("a", 500)
	taken.exists = true
	block := ask("a", 110)
	block.block.Last = 130
	for _, c := range []struct {
		why     string
		me      Me
		request request
		want    Answer
	}{
		{"the key exists, and the token is larger", self, taken, Answer{Code: Held, Token: 120}},
		{"the key's own token", self, ask("a", 120), Answer{Code: Stale, Token: 120}},
		{"a block that only ends above it", self, block, Answer{Code: Stale, Token: 120}},
		{"the floor, for a key without a token", self, ask("c", 100), Answer{Code: Low, Token: 100}},
		{"the floor, for a key with less", self, ask("b", 99), Answer{Code: Low, Token: 100}},
		{"no token", self, ask("a", 0), Answer{Code: Invalid}},
		{"beyond 2^53", self, ask("a", MaxToken+1), Answer{Code: Invalid}},
		{"an earlier run's marker", later, ask("a", 500), Answer{Code: Amnesia}},
		{"another fleet's", other, ask("a", 500), Answer{Code: Foreign, Text: "active:f3:r1"}},
	} {
		tokens := []Token{{"a", 120}, {"b", 90}}
		n := voting(100, slices.Clone(tokens)...)
		require.Equal(t, c.want, n.asked(c.me, c.request), c.why)
		require.Equal(t, voting(100, tokens...), n, c.why)
	}
}

func TestAcquire(t *testing.T) {
	n := voting(100)
	require.Equal(t, OK, n.asked(self, ask("b", 101)).Code)
	require.Equal(t, OK, n.asked(self, ask("a", MaxToken)).Code, "however far ahead")
	block := ask("b", 102)
	block.block.Last = 105
	require.Equal(t, OK, n.asked(self, block).Code)
	require.Equal(t, []Token{{"a", MaxToken}, {"b", 105}}, n.Tokens, "the last token of a block is recorded")
	require.Equal(t, Answer{Code: OK, Token: MaxToken, Text: "active:f3:r1"}, n.Read(self))

	require.Equal(t, Answer{Code: Gone}, n.Extend(self, false))
	require.Equal(t, Answer{Code: OK}, n.Extend(self, true))
	require.Equal(t, Answer{Code: Amnesia}, n.Extend(later, true))
}

func TestCollect(t *testing.T) {
	n := voting(10, Token{"a", 20}, Token{"b", 40}, Token{"c", 30})
	require.Equal(t, OK, n.Raise(self, 30).Code)
	require.Equal(t, voting(30, Token{"b", 40}), n)
	require.Equal(t, OK, n.Raise(self, 5).Code, "a late request")
	require.Equal(t, OK, n.Collect(self, 100, 135).Code)
	require.Equal(t, Invalid, n.Raise(self, MaxToken+1).Code)
	require.Equal(t, Amnesia, n.Raise(later, 50).Code)
	require.Equal(t, Amnesia, n.Collect(later, 0, 50).Code)
	require.Equal(t, voting(35, Token{"b", 40}), n)
	require.Equal(t, OK, n.Collect(self, 100, 99).Code, "a clock that is far behind")
	require.Equal(t, OK, n.Collect(self, 100, 150).Code)
	require.Equal(t, Answer{Code: OK, Token: 50, Text: "active:f3:r1"}, n.Read(self), "the floor alone")
}

func TestForgetting(t *testing.T) {
	n := Node{}
	require.Equal(t, Answer{Code: Amnesia}, n.asked(self, ask("a", 1)))
	require.Equal(t, Answer{Code: Amnesia}, n.Rejoin(self, "", 7, "f3"), "no marker is no nonce")
	first := n.Notice(self, "n", 17)
	require.Equal(t, Answer{Code: Amnesia, Text: "n.17"}, first)
	require.Equal(t, first, n.Notice(self, "m", 18), "the one that is there")
	require.Equal(t, first, n.asked(self, ask("a", 1)), "all learn it")
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

	// A state that comes back from a file has tokens, and no vote.
	n = voting(100, Token{"a", 120})
	require.Equal(t, Answer{Code: Amnesia, Text: "n.21"}, n.Notice(later, "n", 21))
	require.Equal(t, OK, n.Rejoin(later, "n.21", 50, "f3").Code)
	require.Equal(t, Node{Marker{Voting, later, ""}, 100, []Token{{"a", 120}}}, n, "what it has is kept")

	// One that forgets nothing is resumed, if it had a vote; what it shows is no word of others.
	n = voting(100, Token{"a", 120})
	require.Equal(t, Answer{Code: OK, Token: 120, Text: "active:f3:r1"}, n.Show(later))
	require.Equal(t, Foreign, n.Resume(other).Code)
	require.Equal(t, Foreign, n.Show(other).Code)
	require.Equal(t, OK, n.Resume(later).Code)
	require.Equal(t, Node{Marker{Voting, later, ""}, 100, []Token{{"a", 120}}}, n)
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
