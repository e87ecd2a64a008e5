package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// newFenced is a scriptedFleet of three nodes that are asked by the scripts of package fencing.
// A batch is written once for each of them.
func newFenced(t *testing.T) *scriptedFleet {
	p := newScripted(t, 3)
	p.engine.ledger.fence = &command.Fence{Set: "set"}
	for node := range p.nodes {
		p.speaks = append(p.speaks, conn.Form(command.Form(0).ForNode(node)))
		p.engine.ledger.fence.Me[node] = []byte("fleet:run")
	}
	return p
}

func (p *scriptedFleet) acquires() (a, b *countedOp) {
	a, b = p.queue(Acquire, "a"), p.queue(Acquire, "b")
	a.Block, b.Block = fencing.Block{First: 5, Last: 6}, fencing.Block{First: 5, Last: 6}
	p.turn(func() {})
	require.Len(p.t, p.sent, 3)
	require.Equal(p.t, 1, p.sent[0].batch.Replies)
	return a, b
}

type voteless struct {
	unobserved
	codes map[int]fencing.Code
}

func (v voteless) NodeChanged(node int, _ Change, a fencing.Answer) { v.codes[node] = a.Code }

// TestFencedAnswers: each answer of a merged call counts for its own attempt. A node that has
// refused an attempt has no key of it; one that has forgotten its tokens has no vote.
func TestFencedAnswers(t *testing.T) {
	p := newFenced(t)
	forgotten := voteless{codes: map[int]fencing.Code{}}
	p.engine.ledger.observer = forgotten
	a, b := p.acquires()
	p.turn(func() {
		p.reply(p.sent[0], 0, "*2\r\n:1\r\n*2\r\n:2\r\n$1\r\n7\r\n") // OK, HELD
		p.reply(p.sent[1], 1, "*2\r\n*2\r\n:5\r\n$0\r\n\r\n:1\r\n")  // AMNESIA, OK
		p.reply(p.sent[2], 2, "*2\r\n:1\r\n*2\r\n:3\r\n$1\r\n9\r\n") // OK, STALE
	})
	require.NoError(t, a.Err)
	require.Equal(t, 1, a.Tally.Count(quorum.Failed), "a node that has forgotten has voted")
	require.EqualValues(t, 0b010, a.Absent)
	require.Equal(t, []Answer{{1, fencing.Answer{Code: fencing.Amnesia}}}, a.Answers)
	require.Equal(t, map[int]fencing.Code{1: fencing.Amnesia}, forgotten.codes)

	require.Error(t, b.Err)
	require.EqualValues(t, 0b101, b.Absent)
	require.ElementsMatch(t, []Answer{
		{0, fencing.Answer{Code: fencing.Held, Token: 7}}, {2, fencing.Answer{Code: fencing.Stale, Token: 9}},
	}, b.Answers)
	require.Contains(t, p.last().bytes, command.ReleaseSHA1, "the node that has granted it keeps the key")
}

// TestFencedRepeats: where the script is missing, or a key is forbidden, the attempts that
// are not over are asked again. The key of one that is over would stay: it would be set after
// its release.
func TestFencedRepeats(t *testing.T) {
	p := newFenced(t)
	a, b := p.acquires()
	first := p.sent[2]
	p.turn(func() {
		for node := range 2 { // a is granted, b is open
			p.reply(p.sent[node], node, [2]string{"*2\r\n:1\r\n:1\r\n", "*2\r\n:1\r\n*2\r\n:5\r\n$0\r\n\r\n"}[node])
		}
	})
	require.NoError(t, a.Err)
	require.Equal(t, 1, a.times)
	require.Zero(t, b.times)
	p.turn(func() { p.reply(first, 2, noSuch) })
	again := p.last()
	require.Contains(t, again.bytes, fencing.AcquireScript)
	require.Contains(t, again.bytes, "$1\r\nb\r\n")
	require.NotContains(t, again.bytes, "$1\r\na\r\n", "its attempt is over")

	p = newFenced(t)
	p.acquires()
	p.turn(func() { p.reply(p.sent[2], 2, noKey) })
	require.Equal(t, 2, p.last().batch.Replies, "the keys share a refusal")
}
