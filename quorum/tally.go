package quorum

import "math/bits"

// Tally counts the votes of one round. It is a value of 32 bytes, made to be
// embedded and reused: Reset it before each round. It must not be used by two
// goroutines at once. No method panics, blocks or allocates.
//
// A tally that was never Reset has no nodes and no verdict: Record ignores
// every vote and returns the zero Verdict.
type Tally struct {
	// The votes, a bit for each node. No bit is set in two of them.
	granted, denied, failed uint64

	// How many more grants win the round, and how many more refusals (denied
	// or failed) lose it. They start at Size(n) and n-Size(n)+1, together
	// n+1: one more than there are votes. Hence at most one of them ever
	// reaches zero, and the verdict it sets there needs no guard against a
	// second one.
	toWin, toLose uint8

	n       uint8
	verdict Verdict
}

// Reset forgets all votes and starts a round of n nodes, numbered 0 to n-1.
//
// With n outside 1 to MaxNodes the round has no nodes and is lost from the
// start: a mistake in counting the nodes must not be
// able to win a lock.
func (t *Tally) Reset(n int) {
	if n < 1 || n > MaxNodes {
		*t = Tally{verdict: Lost}
		return
	}
	*t = Tally{
		toWin:   uint8(Size(n)),
		toLose:  uint8(n - Size(n) + 1),
		n:       uint8(n),
		verdict: Pending,
	}
}

// Record counts the vote of one node and returns the verdict with that vote
// counted in. The verdict leaves Pending at the earliest vote that settles it
// and never changes again; later votes are still recorded.
//
// The first outcome of a node stands: a second vote of the same node, a node
// outside the round and an Outcome that is none are ignored.
func (t *Tally) Record(node int, o Outcome) Verdict {
	if uint(node) >= uint(t.n) {
		return t.verdict
	}
	bit := uint64(1) << (uint(node) % MaxNodes)
	if (t.granted|t.denied|t.failed)&bit != 0 {
		return t.verdict
	}
	switch o {
	case Granted:
		t.granted |= bit
		if t.toWin--; t.toWin == 0 {
			t.verdict = Won
		}
		return t.verdict
	case Denied:
		t.denied |= bit
	case Failed:
		t.failed |= bit
	default:
		return t.verdict
	}
	if t.toLose--; t.toLose == 0 {
		t.verdict = Lost
	}
	return t.verdict
}

// Verdict returns the verdict of the votes recorded so far.
func (t *Tally) Verdict() Verdict { return t.verdict }

// Outcome returns the recorded vote of a node, or 0 if the node has not voted or
// does not belong to the round.
func (t *Tally) Outcome(node int) Outcome {
	if uint(node) >= uint(t.n) {
		return 0
	}
	bit := uint64(1) << (uint(node) % MaxNodes)
	switch {
	case t.granted&bit != 0:
		return Granted
	case t.denied&bit != 0:
		return Denied
	case t.failed&bit != 0:
		return Failed
	}
	return 0
}

// Count returns how many nodes of the round have voted o, including votes after the
// verdict. Count(0) is the number of nodes that have not voted.
func (t *Tally) Count(o Outcome) int {
	switch o {
	case Granted:
		return bits.OnesCount64(t.granted)
	case Denied:
		return bits.OnesCount64(t.denied)
	case Failed:
		return bits.OnesCount64(t.failed)
	case 0:
		return int(t.n) - bits.OnesCount64(t.granted|t.denied|t.failed)
	}
	return 0
}
