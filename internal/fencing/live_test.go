package fencing

import "math/bits"

// stuck reports whether a majority votes that does not lock the free key with the second
// attempt of a lone client, or how: for each majority, as the only nodes that can be reached,
// at every reading of the client's clock. Each of its nodes has been asked by the first attempt
// when the second begins, since a refusal of the number does not end an attempt before.
func (m *stepper) stuck(s *state) bool {
	for set := uint8(0); set < 1<<m.nodes; set++ {
		if bits.OnesCount8(set) != m.fleet.Quorum {
			continue
		}
		votes := true
		for i := range m.nodes {
			votes = votes && (set>>i&1 == 0 || s.nodes[i].marker == active)
		}
		for now := uint64(1); votes && now <= uint64(m.top()); now++ {
			if !m.locks(s, set, now) {
				return true
			}
		}
	}
	return false
}

func (m *stepper) locks(s *state, set uint8, now uint64) bool {
	var p Proposal
	var columns [maxNodes]column
	copy(columns[:], s.nodes[:])
	for range 2 {
		b, ok := p.Next(now, m.block)
		if !ok {
			return false
		}
		var r Refusals
		granted := 0
		for i := range m.nodes {
			if set>>i&1 == 0 {
				continue
			}
			v := columns[i].node(m.tokens)
			a := v.Read(me)
			if !m.bounded || b.First <= max(a.Token, 1)+1 { // its TIME is 1
				a = v.Acquire(me, theKey, b, false)
			} else {
				a.Code = Stale
			}
			columns[i].keep(&v)
			r.Add(i, a)
			if granted += bitOf(a.Code == OK); a.Code == Stale {
				p.Learn(a)
				if m.firstRefusal {
					break
				}
			}
		}
		switch {
		case granted >= m.fleet.Quorum:
			return true
		case r.Advise(m.fleet) != Again && !m.firstRefusal:
			return false
		}
	}
	return false
}
