package sharing_test

import (
	"cmp"
	"slices"
)

func (a *at) pack() uint64 {
	x := uint64(a.entry)
	for i, is := range [...]bool{a.acquire, a.release, a.extend, a.repair, a.granted, a.extended, a.missing} {
		if is {
			x |= 8 << i
		}
	}
	return x
}

// canonical maps all states equal but for names, and for facts that no longer matter, to one.
func (w *world) canonical(s *state) {
	for i := range w.actors() {
		w.forget(s, i)
	}
	if w.joint { // its names matter
		return
	}
	w.order(s, 0, w.readers)
	w.order(s, w.readers, w.actors())
	pack := func(n *node) (x uint64) {
		for i := range w.actors() {
			x = x<<10 | n.at[i].pack()
		}
		return x<<6 | uint64(n.key)<<3 | uint64(n.forgetful)
	}
	slices.SortFunc(s.nodes[:w.nodes], func(a, b node) int { return cmp.Compare(pack(&a), pack(&b)) })
}

// forget clears the facts of an actor that no longer matter.
func (w *world) forget(s *state, i int) {
	a := &s.actors[i]
	if a.phase == holds || a.phase == late {
		for k := range w.nodes {
			s.nodes[k].at[i].granted = false
		}
		return
	}
	a.extending = false
	repairs, asks := false, false
	for k := range w.nodes {
		p := &s.nodes[k].at[i]
		p.extended, p.missing = false, false
		if a.phase == over {
			p.granted = false
			if !p.acquire && !p.repair && p.entry == 0 {
				p.release, p.extend = false, false
			}
		}
		repairs, asks = repairs || p.repair, asks || p.acquire || p.extend
	}
	if a.phase == over {
		a.valid, a.extension, a.extends, a.broken = 0, 0, 0, false
		if !repairs {
			a.left = 0
		}
		if !asks {
			a.ttl = 0
		}
	}
}

// order sorts actors of a kind by facts independent of the order of the nodes.
func (w *world) order(s *state, from, to int) {
	var keys [maxActors]uint64
	for i := from; i < to; i++ {
		a := &s.actors[i]
		for _, part := range [...]uint8{a.phase, a.ttl, a.valid, a.extension, a.left, a.extends} {
			keys[i] = keys[i]<<3 | uint64(part)
		}
		for k := range w.nodes {
			keys[i] += s.nodes[k].at[i].pack() * 0x9e3779b97f4a7c15 >> 20 << 18
		}
	}
	for i := from; i < to; i++ {
		for j := i + 1; j < to; j++ {
			if keys[j] < keys[i] {
				keys[i], keys[j] = keys[j], keys[i]
				s.actors[i], s.actors[j] = s.actors[j], s.actors[i]
				for k := range w.nodes {
					n := &s.nodes[k]
					n.at[i], n.at[j] = n.at[j], n.at[i]
				}
			}
		}
	}
}
