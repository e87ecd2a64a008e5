package fencing_test

import (
	"github.com/redlock-go/redlock/quorum"

	. "github.com/redlock-go/redlock/internal/rules/fencing"
)

// stuck reports whether a voting majority does not lock the free key with the second attempt of a
// lone client, or how: for each majority, as the only reachable nodes, at every reading of the
// client's clock. The first attempt has asked each of its nodes when the second begins, since a
// refusal of the number does not end an attempt before.
func (m *stepper) stuck(s *state) bool {
	for step := range m.changeSteps() {
		f := &m.fleets[step]
		for set := quorum.Set(0); set < 1<<m.nodes; set++ {
			if !f.IsQuorum(set) || isMore(f, set) {
				continue
			}
			votes := true
			for i := range m.nodes {
				votes = votes && (set>>i&1 == 0 || m.serves(&s.nodes[i], step))
			}
			for now := uint64(1); votes && now <= uint64(m.top()); now++ {
				if !m.locks(s, set, now, step) {
					return true
				}
			}
		}
	}
	return false
}

// isMore reports whether a quorum has a node too many.
func isMore(f *Fleet, set quorum.Set) bool {
	for left := set; left != 0; left &= left - 1 {
		if f.IsQuorum(set &^ (left & -left)) {
			return true
		}
	}
	return set&^f.Nodes() != 0
}

// serves reports whether a node must vote for clients in a step. All voting nodes serve those in
// step 1, and those in step 0 too until an operator's call.
func (m *stepper) serves(n *column, step uint8) bool {
	v := n.node(m.tokens)
	if step == joint || step == before && m.calls == 0 {
		return v.Marker.Phase == Voting && n.marker != outdated
	}
	return v.Read(mes[step]).Code == OK
}

func (m *stepper) locks(s *state, set quorum.Set, now uint64, step uint8) bool {
	var p Proposal
	var columns [maxNodes]column
	copy(columns[:], s.nodes[:])
	for range 2 {
		b, ok := p.Next(now, m.block)
		if !ok {
			return false
		}
		var r Answers
		granted := quorum.Set(0)
		for i := range m.nodes {
			if set>>i&1 == 0 {
				continue
			}
			v := columns[i].node(m.tokens)
			a := v.Read(mes[step])
			if !m.bounded || b.First <= max(a.Token, 1)+1 { // its TIME is 1
				a = v.Acquire(mes[step], theKey, b, false)
			} else {
				a.Code = Stale
			}
			columns[i].keep(&v)
			r.Add(i, a)
			if a.Code == OK {
				granted |= 1 << i
			}
			if a.Code == Stale || a.Code == Low {
				p.Learn(a)
				if m.firstRefusal {
					break
				}
			}
		}
		f := &m.fleets[step]
		switch {
		case f.IsQuorum(granted):
			return true
		case r.Advise(f, Memory{}) != Again && !m.firstRefusal:
			return false
		}
	}
	return false
}
