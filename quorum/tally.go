package quorum

// Tally counts the votes of one round. It is a value of 32 bytes, made to be embedded and reused: Reset it before
// each round. It must not be used by two goroutines at once. No method panics, blocks or allocates.
//
// A Tally without a Reset has no nodes and no verdict: Record ignores every vote and returns the zero Verdict.
type Tally struct {
	config *Config

	// The votes, as the two bits of an Outcome: one word for the low bits, one for the high bits. The refusals
	// (Denied and Failed) have the high bit in common.
	low, high Set

	verdict Verdict
}

// Reset forgets all votes and starts a round of the nodes and quorums of c, which must not be nil.
// Without nodes it is lost from the start: a mistake in counting them must not be able to win a lock.
func (t *Tally) Reset(c *Config) { *t = Tally{config: c, verdict: c.start} }

// Record counts the vote of one node and returns the verdict, with this vote counted in. The verdict leaves Pending
// at the earliest decisive vote and never changes again; later votes are still recorded.
//
// The first outcome of a node stands: a second vote of the same node, a node outside the round and an unknown Outcome
// are ignored.
func (t *Tally) Record(node int, o Outcome) Verdict {
	if uint(node) >= MaxNodes || t.config == nil || o-1 > Failed-1 {
		return t.verdict
	}
	bit := Only(node % MaxNodes)
	if bit&t.config.all&^(t.low|t.high) == 0 {
		return t.verdict
	}
	t.low |= bit & -Set(o&1)
	t.high |= bit & -Set(o>>1)
	if t.verdict == Pending {
		if o == Granted {
			if t.config.IsQuorum(t.low &^ t.high) {
				t.verdict = Won
			}
		} else if t.config.Blocks(t.high) {
			t.verdict = Lost
		}
	}
	return t.verdict
}

// Grant is Record of the vote Granted, for several nodes at once.
func (t *Tally) Grant(nodes Set) Verdict {
	if t.config == nil {
		return t.verdict
	}
	t.low |= nodes & t.config.all &^ t.high
	if t.verdict == Pending && t.config.IsQuorum(t.low&^t.high) {
		t.verdict = Won
	}
	return t.verdict
}

// Verdict returns the verdict of the votes recorded so far.
func (t *Tally) Verdict() Verdict { return t.verdict }

// Outcome returns the recorded vote of a node, or 0 if the node has not voted or
// does not belong to the round.
func (t *Tally) Outcome(node int) Outcome {
	if uint(node) >= MaxNodes {
		return 0
	}
	return Outcome(t.low>>uint(node)&1 | t.high>>uint(node)&1<<1)
}

// Nodes returns the set of nodes with the vote o, including votes after the verdict. Nodes(0) is the nodes without a
// vote.
func (t *Tally) Nodes(o Outcome) Set {
	switch o {
	case Granted:
		return t.low &^ t.high
	case Denied:
		return t.high &^ t.low
	case Failed:
		return t.low & t.high
	case 0:
		if t.config != nil {
			return t.config.all &^ (t.low | t.high)
		}
	}
	return 0
}

// Count returns how many nodes are in Nodes(o).
func (t *Tally) Count(o Outcome) int { return t.Nodes(o).Len() }
