package fencing_test

import (
	"github.com/redlock-go/redlock/quorum"

	. "github.com/redlock-go/redlock/internal/rules/fencing"
)

// The acts of operators to give votes, and changes of groups.

// A node as shown to an act.
const (
	unasked   = iota
	silent    // no answer yet
	showsNow  // it has a vote, by the names in its marker
	showsNext //
	showsBoth //
	marked    // it had one in an earlier run; of a recovery: it has no nonce
	noticed   // by clients of another fleet
	blank     // none of these; of a recovery: it has a nonce of clients of this fleet

	// And once the act gives votes:
	left      = silent // to others
	forgotten = showsNow
	asked     = showsNext
)

// acting is the phase of an act after its look.
const acting = confirming

// kind returns the kind of call c: change, back, init or recover.
func (w *world) kind(c int) byte {
	switch {
	case w.acts != "":
		return w.acts[3*c]
	case w.back && c == w.calls-1:
		return 'b'
	}
	return 'c'
}

// actStep is the step of call c's client.
func (w *world) actStep(c int) uint8 { return w.acts[3*c+1] - '0' }

// actSteps returns the steps of an act that gives votes: it looks at all nodes of its client, each at any time, and
// then asks the forgetful ones. An act cut off just takes no further step.
func (m *stepper) actSteps(c int) {
	k := m.s.calls[c]
	if k.phase != looking {
		return
	}
	step, all := m.actStep(c), true
	for i := range m.nodes {
		f := m.fleetOfNode(i, step)
		if f.Nodes()>>i&1 == 0 || m.s.nodes[i].calls[c] != unasked {
			continue
		}
		all = false
		if m.kind(c) == 'r' && !m.mayRecover(step) {
			return
		}
		m.look(c, i, &f)
	}
	if all {
		m.decide(c)
	}
}

// mayRecover is an operator's precondition: too many nodes have forgotten, and no earlier attempt is under way. The
// number covers all grants made before a node in the look forgot.
func (m *stepper) mayRecover(step uint8) bool {
	for i := range m.nodes {
		f := m.fleetOfNode(i, step)
		if f.Nodes()>>i&1 == 0 {
			continue
		}
		l := BeginLook(f)
		for j := range m.nodes {
			if f.Nodes()>>j&1 == 1 {
				v := m.s.nodes[j].node(m.tokens)
				l.Shown(j, me.Run, v.Show(mes[step]))
			}
		}
		if !l.Knows() {
			return m.counting(m.s) == 0
		}
	}
	return false
}

func (m *stepper) look(c, i int, f *Fleet) {
	v := m.s.nodes[i].node(m.tokens)
	a := v.Show(mes[m.actStep(c)])
	l := BeginLook(*f)
	l.Shown(i, me.Run, a)
	shown := uint8(blank)
	switch {
	case l.Memory.Now != 0:
		shown = showsNow
	case l.Memory.Next != 0:
		shown = showsNext
	case l.Memory.Both != 0:
		shown = showsBoth
	case l.Others != 0:
		shown = noticed
	case l.Marked != 0, m.kind(c) == 'r' && l.Nonces[i] == "" && !m.anyNonce:
		shown = marked
	}
	x := m.add(shows, c, i, int(shown))
	x.after.nodes[i].calls[c] = shown
	if l.Fits() != Acts && !m.anyGroup {
		m.endAct(&x.after, c)
	}
	y := m.add(misses, c, i)
	y.after.nodes[i].calls[c] = silent
	for at := range 2 {
		s := &m.steps[len(m.steps)-2+at].after
		switch k := &s.calls[c]; {
		case k.phase == opened:
		case m.kind(c) == 'i' && at == 0:
			k.floor = max(k.floor, uint8(a.Token))
		case m.kind(c) == 'r':
			k.floor = m.seen()
		}
	}
}

// endAct ends an act, and its requests under way.
func (m *stepper) endAct(s *state, c int) {
	s.calls[c] = call{phase: opened}
	for i := range m.nodes {
		s.nodes[i].calls[c] = 0
	}
	for r := range m.clients {
		if int(s.clients[r].by) == c+1 {
			s.clients[r] = client{}
		}
	}
}

// decide returns the verdict of an act, from the look at the nodes.
func (m *stepper) decide(c int) {
	step, looks := m.actStep(c), []*Look{}
	for i := range m.nodes {
		f := m.fleetOfNode(i, step)
		if f.Nodes()>>i&1 == 1 && (m.groups || len(looks) == 0) {
			l := m.lookOf(c, i, f)
			l.Added = i > 0 && step == joint || m.anyGroup
			looks = append(looks, &l)
		}
	}
	var all []Verdict
	stage := Begun
	if m.kind(c) == 'i' {
		all = Inits(looks)
		if m.anyGroup {
			for at, l := range looks {
				all[at] = Inits([]*Look{l})[0]
			}
		}
	} else {
		for _, l := range looks {
			all = append(all, l.Recovers())
			if !m.anyStage {
				stage = max(stage, l.Memory.Stage())
			}
		}
	}
	gives := Known
	for at, v := range all {
		if looks[at].Fits() != Acts && !m.anyGroup {
			v = Apart
		}
		switch {
		case v == Acts && gives == Known:
			gives = Acts
		case v > Known && gives <= Waits:
			gives = v
		}
	}
	x := m.add(verdicts, c, int(gives), int(stage))
	if gives == Waits {
		x.after.calls[c] = call{}
		for i := range m.nodes {
			x.after.nodes[i].calls[c] = unasked
		}
		return
	}
	if gives != Acts {
		m.endAct(&x.after, c)
		m.settle(&x.after)
		return
	}
	k := &x.after.calls[c]
	k.phase, k.stage = acting, uint8(stage)
	if m.kind(c) == 'i' {
		k.floor = 0
	}
	for i := range m.nodes {
		shown := m.s.nodes[i].calls[c]
		at := 0
		if m.groups {
			at = i
		}
		is := shown == marked && m.kind(c) == 'i' || shown == noticed || shown == blank || shown == silent && m.anyAnswer
		x.after.nodes[i].calls[c] = left
		if is && at < len(all) && all[at] == Acts {
			x.after.nodes[i].calls[c] = forgotten
		}
		if shown == unasked {
			x.after.nodes[i].calls[c] = unasked
		}
	}
}

// lookOf returns an act's look at the group of node i.
func (m *stepper) lookOf(c, i int, f Fleet) Look {
	l := BeginLook(f)
	for j := range m.nodes {
		if f.Nodes()>>j&1 == 0 {
			continue
		}
		text := Marker{Phase: Provisional, Me: Me{Run: me.Run}, Nonce: f.Name() + "/n"}.String()
		switch shown := m.s.nodes[j].calls[c]; shown {
		case silent:
			if !m.anyAnswer {
				l.Silent.Add(j)
				continue
			}
		case showsNow, showsNext, showsBoth:
			text = (&Marker{Phase: Voting, Me: Me{[...]string{f.Now.Name, f.Next.Name, f.Name()}[shown-showsNow], me.Run}}).String()
		case marked:
			text = Marker{Phase: Voting, Me: earlier}.String()
			if m.kind(c) == 'r' {
				text = ""
			}
		case noticed:
			if !m.anyNotice {
				text = Marker{Phase: Provisional, Me: Me{Run: me.Run}, Nonce: "others/n"}.String()
			}
		}
		token := Token(0)
		if m.kind(c) == 'i' {
			token = Token(m.s.calls[c].floor)
		}
		l.Shown(j, me.Run, Answer{Code: OK, Token: token, Text: text})
	}
	return l
}

// openedBy returns the nodes of the next configuration found open by a call, a bit each.
func (m *stepper) openedBy(c int) (nodes quorum.Set) {
	f, _ := m.callFleet(c)
	for i := range m.nodes {
		v := m.s.nodes[i].node(m.tokens)
		if m.s.nodes[i].calls[c]&known != 0 && v.Marker.Phase == Voting && v.Marker.Me.Fleet == f.Next.Name {
			nodes |= 1 << i
		}
	}
	return nodes
}

// checked is the phase of a group after looking and confirming: it was sealed in both looks.
const checked = 2

// groupSteps returns the steps of a change of groups. A look is over in all of them at once: none is looked at again
// before all are sealed, and none is opened before all still are.
func (m *stepper) groupSteps(c int) {
	_, me := m.callFleet(c)
	k := m.s.calls[c]
	if k.phase == opened {
		return
	}
	phase := func(g int) uint8 { return k.stage >> (2 * g) & 3 }
	isCounted := func(g int) bool { return m.s.nodes[g].calls[c]&counted != 0 }
	ended := func(look uint8) bool {
		for g := range m.nodes {
			if phase(g) < look || phase(g) == look && !isCounted(g) {
				return false
			}
		}
		return true
	}
	for g := range m.nodes {
		switch look := phase(g); {
		case look == checked:
		case !isCounted(g):
			m.seal(c, g, me, look)
		case m.looksApart || ended(look):
			x := m.add(looksAgain, c, g)
			x.after.calls[c].stage += 1 << (2 * g)
			x.after.nodes[g].calls[c] &^= counted
			if look == confirming && m.opensInTurn {
				m.openGroup(x, c, g)
			}
		}
	}
	if k.stage == checked|checked<<2 { // two groups
		x := m.add(opens, c, int(k.floor))
		for g := range m.nodes {
			m.openGroup(x, c, g)
		}
		x.after.calls[c] = call{phase: opened}
		for g := range m.nodes {
			x.after.nodes[g].calls[c] = 0
		}
	}
}

func (m *stepper) openGroup(x *step, c, g int) {
	names, floor := namesNext, m.s.calls[c].floor
	if m.kind(c) == 'b' {
		names = namesNow
	}
	n := &x.after.nodes[g]
	if m.ownFloor {
		floor = max(n.f, n.floor)
	}
	if n.calls[c]&known != 0 {
		n.fresh |= 1 << (int(floor) + names*(int(m.top())+1))
	}
}
