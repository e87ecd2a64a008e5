package fencing_test

import (
	"strings"

	. "github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/quorum"
)

// The steps of a change, for clients, and the way back.
const (
	before    = iota // the present configuration alone
	joint            // both
	after            // the next one alone
	goingBack        // both, for a call on the way back
)

// Names in a marker.
const (
	namesNow = iota
	namesNext
	namesBoth
)

var (
	mes        = [...]Me{{"now", "run"}, {"now+next", "run"}, {"next", "run"}, {"next+now", "run"}}
	fleetNames = [...]string{namesNow: "now", namesNext: "next", namesBoth: "now+next"}
)

// A call's knowledge of a node.
const (
	counted = 1 << iota // it was sealed in this look, and in the second look: since the first
	known               // the call has its nonce
	again               // from the second look
)

// Phases of a call.
const (
	looking = iota
	confirming
	opened
)

// changeSteps has the possible steps of clients.
func (w *world) changeSteps() uint8 {
	if w.to == 0 {
		return 1
	}
	return 3
}

func (w *world) fleetOf(names int) string { return fleetNames[names] }

// client is a client of a step, as seen by nodes.
func (w *world) client(step uint8) Me {
	if w.noCall && step == after || w.beside && step == before {
		step = joint
	}
	return mes[step]
}

// names returns the names that a client puts into a node's marker.
func (m *stepper) names(k *client) int {
	r := m.recovery(k)
	switch {
	case k.step == joint && m.relabels:
		return namesBoth
	case k.step == joint && m.unsealed:
		return namesNow
	}
	switch r.Names() {
	case "now":
		return namesNow
	case "next":
		return namesNext
	}
	return namesBoth
}

// callFleet returns the fleet of call c.
func (m *stepper) callFleet(c int) (f Fleet, me Me) {
	step := joint
	if m.kind(c) == 'b' {
		step = goingBack
	}
	f = m.fleets[step]
	if m.fewSealed {
		f.Now.Quorum--
	}
	return f, mes[step]
}

// callSteps returns the steps of an operator's call. Its second look may find nodes missed by the first. An unfinished
// call just takes no further step.
func (m *stepper) callSteps(c int) {
	if m.groups {
		m.groupSteps(c)
		return
	}
	f, me := m.callFleet(c)
	k := m.s.calls[c]
	if k.phase == opened {
		return
	}
	for i := range m.nodes {
		if m.s.nodes[i].calls[c]&counted == 0 {
			m.seal(c, i, me, k.phase)
		}
	}
	if nodes := m.countedBy(c); k.phase == looking && f.Now.IsQuorum(nodes) {
		x := m.add(looksAgain, c)
		x.after.calls[c].phase = confirming
		if m.oneLook {
			m.open(x, c, &f)
			return
		}
		for i := range m.nodes {
			x.after.nodes[i].calls[c] &^= counted
		}
	} else if k.phase == confirming && f.Now.IsQuorum(nodes) {
		x := m.add(opens, c, int(k.floor))
		m.open(x, c, &f)
	} else if m.acts != "" && f.Next.Knows(m.openedBy(c)) { // by an earlier call
		x := m.add(opens, c, int(k.floor))
		m.open(x, c, &f)
	}
}

func (m *stepper) countedBy(c int) (nodes quorum.Set) {
	for i := range m.nodes {
		nodes |= quorum.Set(m.s.nodes[i].calls[c]&counted) << i
	}
	return nodes
}

func (m *stepper) seal(c, i int, me Me, phase uint8) {
	v := m.s.nodes[i].node(m.tokens)
	had := v.Marker
	a := v.Seal(me, "n", 0)
	if a.Code != OK {
		return
	}
	if m.sealsOpen {
		v.Marker = Marker{Voting, me, nonceNow}
	}
	x := m.add(seals, c, i)
	if _, next, _ := strings.Cut(me.Fleet, "+"); m.acts != "" && had.Me.Fleet == next && v.Marker.Me.Fleet != next {
		x.broken = "what was opened is sealed again"
	}
	n := &x.after.nodes[i]
	n.keep(&v)
	if had.Me != v.Marker.Me || had.Nonce != v.Marker.Nonce {
		m.renounce(&x.after, i)
	}
	k := &x.after.calls[c]
	switch {
	case phase == looking:
		n.calls[c] = counted | known
	case n.calls[c] == known:
		n.calls[c] |= counted
	default:
		n.calls[c] = known | again
	}
	if phase == confirming || m.oneLook || m.acts != "" {
		k.floor = max(k.floor, uint8(a.Token))
	}
	m.settle(&x.after)
	if x.after == *m.s {
		m.steps = m.steps[:len(m.steps)-1]
	}
}

// open sends the next nodes their floor, and ends the call.
func (m *stepper) open(x *step, c int, f *Fleet) {
	names := namesNext
	if f.Next.Name == "now" {
		names = namesNow
	}
	for i := range m.nodes {
		if n := &x.after.nodes[i]; f.Next.Nodes>>i&1 == 1 && n.calls[c]&known != 0 {
			n.fresh |= 1 << (int(x.after.calls[c].floor) + names*(int(m.top())+1))
		}
	}
	x.after.calls[c] = call{phase: opened}
	for i := range m.nodes {
		x.after.nodes[i].calls[c] = 0
	}
}
