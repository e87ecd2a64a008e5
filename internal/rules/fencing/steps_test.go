package fencing_test

import (
	"slices"

	. "github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/test/fencenode"
)

// step is an action in a state: its result, and how it breaks the property.
type step struct {
	action action
	after  state
	broken string
}

// stepper is the storage of one search, reused by its steps.
type stepper struct {
	*world
	s      *state
	steps  []step
	tokens []fencenode.KeyToken
}

// next returns the possible steps of a state. The next call uses the storage again.
//
// The model leaves out only what cannot break the property sooner or at all. An attempt succeeds
// with its last vote, and ends without success when a quarantine waits for it (before that, an
// ended attempt is one with slow requests). A refusal changes nothing. A reply is received when the
// request is executed: a later one makes its client act later, as it may anyway. A REJOIN is sent
// when the last read has come. Requests stay: each may be executed at any time, any number of
// times. Nodes ignore lock keys, so every TTL, expiry and release is covered.
func (m *stepper) next(s *state) []step {
	m.s, m.steps = s, m.steps[:0]
	if m.tokens == nil {
		m.tokens = make([]fencenode.KeyToken, 0, 2)
	}
	m.attemptSteps()
	for i := range m.nodes {
		m.nodeSteps(i)
	}
	for r := range m.clients {
		m.clientSteps(r)
	}
	for c := range m.calls {
		switch m.kind(c) {
		case 'i', 'r':
			m.actSteps(c)
		default:
			m.callSteps(c)
		}
	}
	return m.steps
}

// add returns a copy of the state to be changed, as the result of an action.
func (m *stepper) add(kind uint8, args ...int) *step {
	a := action{kind: kind}
	for i, v := range args {
		*[]*int8{&a.a, &a.b, &a.c}[i] = int8(v)
	}
	m.steps = append(m.steps, step{action: a, after: *m.s})
	return &m.steps[len(m.steps)-1]
}

func (m *stepper) nodeSteps(i int) {
	n := &m.s.nodes[i]
	if int(m.s.losses) < m.losses && (n.marker != absent || n.f > 0 || n.floor > 0) {
		m.lose(i)
	}
	if n.marker == active {
		m.collectSteps(i)
	}
	if m.lapse && n.isProvisional() {
		x := m.add(lapses, i)
		x.after.nodes[i].marker = absent
		m.replace(&x.after, i)
		m.settle(&x.after)
	}
	for x := range (int(m.top()) + 1) * m.namings() {
		if n.fresh>>x&1 == 1 {
			m.write(i, x, nonceNow, rejoins)
		}
		if n.stale>>x&1 == 1 {
			m.write(i, x, nonceOld, rejoinsStale)
		}
	}
}

func (m *stepper) lose(i int) {
	n := m.s.nodes[i]
	x := m.add(loses, i)
	c := &x.after.nodes[i]
	c.marker, c.f, c.floor = absent, 0, 0
	m.outlive(&x.after, i)
	if m.atOnce {
		v := c.node(m.tokens)
		v.Notice(me, "n", 0)
		v.Rejoin(me, v.Marker.Nonce, 0, me.Fleet)
		c.keep(&v)
	}
	if !m.rollback {
		return
	}
	for f := range int(n.f) + 1 {
		for floor := range int(n.floor) + 1 {
			x = m.add(restarts, i, f, floor)
			c = &x.after.nodes[i]
			c.marker, c.f, c.floor = outdated, uint8(f), uint8(floor)
			if m.unboundActive {
				c.marker = active
			}
			m.outlive(&x.after, i)
		}
	}
}

// outlive changes clients and requests after node i has begun another life.
func (m *stepper) outlive(s *state, i int) {
	s.losses++
	m.renounce(s, i)
	for r := range m.clients {
		if k := &s.clients[r]; k.phase != idle && k.phase != sent && int(k.node) == i {
			k.stale = true
		}
	}
	m.settle(s)
}

// renounce changes calls and requests after node i has lost its nonce.
func (m *stepper) renounce(s *state, i int) {
	n := &s.nodes[i]
	n.fresh, n.stale = 0, n.stale|n.fresh
	for c := range m.calls {
		switch m.kind(c) {
		case 'i', 'r':
			switch seen := &n.calls[c]; {
			case m.anyNonce || m.kind(c) == 'i' && s.calls[c].phase == looking:
			case s.calls[c].phase == looking && *seen == blank:
				*seen = marked
			case s.calls[c].phase == acting && (*seen == asked || *seen == forgotten):
				*seen = left
			}
		default:
			n.calls[c] &^= known
		}
	}
}

func (m *stepper) write(i, request int, nonce string, kind uint8) {
	floor, names := request%(int(m.top())+1), request/(int(m.top())+1)
	v := m.s.nodes[i].node(m.tokens)
	if nonce == nonceNow {
		nonce = v.Marker.Nonce
	}
	if v.Rejoin(mes[joint], nonce, Token(floor), m.fleetOf(names)).Code != OK {
		return
	}
	x := m.add(kind, i, floor)
	if m.to != 0 {
		x.action.c = int8(names)
	}
	x.after.nodes[i].keep(&v)
	m.renounce(&x.after, i)
	m.settle(&x.after)
}

func (m *stepper) collectSteps(i int) {
	n := &m.s.nodes[i]
	for t := 0; m.collect && t <= int(m.top()); t++ {
		v := n.node(m.tokens)
		if !m.lower {
			v.Raise(me, Token(t))
		} else if v.Floor = Token(t); len(v.Tokens) > 0 && int(v.Tokens[0].F) <= t {
			v.Tokens = v.Tokens[:0]
		}
		after := *n
		after.keep(&v)
		if after != *n {
			m.add(collects, i, t).after.nodes[i] = after
		}
	}
}

func (m *stepper) clientSteps(r int) {
	k := &m.s.clients[r]
	if k.phase == idle {
		for step := range m.changeSteps() {
			for i := range m.nodes {
				m.notice(r, i, m.counting(m.s), step, 0)
			}
		}
		for c := range m.calls {
			for i := range m.nodes {
				if m.s.calls[c].phase == acting && m.s.nodes[i].calls[c] == forgotten && (m.kind(c) == 'i' || m.kind(c) == 'r') {
					m.notice(r, i, m.counting(m.s), m.actStep(c), uint8(c)+1)
				}
			}
		}
		return
	}
	m.add(stops, r).after.clients[r] = client{}
	if k.phase == sent {
		m.notice(r, int(k.node), k.wait, k.step, 0)
		return
	}
	if k.phase == waiting && !m.lazy {
		m.endQuarantine(r)
	}
	if k.phase == reading && (m.init || k.by > 0) {
		m.initialize(r)
	}
	if k.by > 0 {
		return
	}
	if k.phase == reading && m.enough(k) { // the last read was not followed by REJOIN at once
		if m.lazy {
			m.send(&m.add(sendsRejoin, r).after, r, k.floor, m.names(k))
		}
		return
	}
	if k.phase == reading || m.readsEarly {
		for j := range m.nodes {
			m.read(r, j)
		}
	}
}

// notice is NOTICE executed by node i, and its reply received.
func (m *stepper) notice(r, i int, wait, step, by uint8) {
	n, k := &m.s.nodes[i], &m.s.clients[r]
	f := m.fleetOfNode(i, step)
	if f.Nodes()>>i&1 == 0 {
		return
	}
	if m.fromSend && k.phase == idle {
		x := m.add(sends, r, i)
		x.after.clients[r] = client{phase: sent, node: uint8(i), wait: wait, step: step}
		return
	}
	v := n.node(m.tokens)
	if m.calm && wait != 0 {
		return
	}
	answer := v.Notice(mes[step], m.noticeOf(step), 0)
	recovery := Recovery{Fleet: m.readers(step, i), Node: i}
	recovery.Answered(Request{Node: i, Verb: NoticeVerb}, answer, true, 0)
	if recovery.Step(0) != "" {
		return
	}
	x := m.add(notices, r, i, int(step+10*by)) // an act and its step
	x.after.nodes[i].keep(&v)
	if n.isProvisional() && x.after.nodes[i].marker != n.marker {
		m.replace(&x.after, i)
	}
	if by > 0 {
		if x.after.nodes[i].calls[by-1] == forgotten {
			x.after.nodes[i].calls[by-1] = asked
		}
		if f.IsOther(v.Marker.Nonce) && !m.anyNotice {
			m.endAct(&x.after, int(by)-1)
			m.settle(&x.after)
			return
		}
	}
	if m.noQuarantine {
		wait = 0
	}
	x.after.clients[r] = client{phase: waiting, node: uint8(i), wait: wait, step: step, by: by}
	if m.earlyWord || m.calm {
		x.after.clients[r].floor = m.seen()
	}
	m.settle(&x.after)
}

func (m *stepper) endQuarantine(r int) {
	x := m.add(quarantineEnds, r)
	for k, wait := 0, m.s.clients[r].wait; k < m.attempts; k++ {
		if wait>>k&1 == 0 {
			continue
		}
		x.after.attempts[k].phase, x.after.attempts[k].late = ended, false
		m.forgetVotes(&x.after, k)
	}
	m.settle(&x.after)
}

// replace changes clients and requests after another nonce has replaced node i's.
func (m *stepper) replace(s *state, i int) {
	m.renounce(s, i)
	for r := range m.clients {
		if k := &s.clients[r]; k.phase != idle && k.phase != sent && int(k.node) == i {
			k.stale = true
		}
	}
}

// seen is the largest token that holders may have shown: the first of each lock's block.
func (m *stepper) seen() (token uint8) {
	for _, a := range m.s.attempts[:m.attempts] {
		if m.granted(a) {
			token = max(token, a.token)
		}
	}
	return token
}

// initialize is InitFencing after the quarantine. The worst is no other reachable node, and a clock
// far behind: a collection may set a larger floor too.
func (m *stepper) initialize(r int) {
	k := m.s.clients[r]
	word := m.seen()
	shown := uint8(0)
	switch {
	case m.noWord:
		word = 0
		for _, n := range m.s.nodes[:m.nodes] {
			if n.marker == active {
				shown = max(shown, n.f, n.floor)
			}
		}
	case m.earlyWord, m.calm:
		word = k.floor
	case m.lowWord:
		word = max(word, 1) - 1
	}
	f := m.fleetOfNode(int(k.node), k.step)
	names := f.At(m.stage(k.step))
	if k.by > 0 {
		word, names = m.s.calls[k.by-1].floor, f.At(Stage(m.s.calls[k.by-1].stage))
	}
	given := Recovery{Fleet: f, Node: int(k.node), Given: names}
	given.Answered(Request{Node: int(k.node), Verb: NoticeVerb}, Answer{Code: Amnesia, Text: Marker{Phase: Provisional, Me: Me{Run: me.Run}, Nonce: k.nonce()}.String()}, true, 0)
	if given.Step(0) != "" || given.Step(1) != RejoinVerb {
		panic("an operator's floor is not used behind the quarantine")
	}
	if k.by > 0 && m.kind(int(k.by)-1) == 'i' {
		x := m.add(initializes, r, 0)
		m.send(&x.after, r, 0, slices.Index(fleetNames[:], given.Names()))
		m.settle(&x.after)
		return
	}
	floor := uint8(min(InitFloor(Token(word), m.block-1, Token(shown), 0), Token(m.top())))
	x := m.add(initializes, r, int(floor))
	m.send(&x.after, r, floor, slices.Index(fleetNames[:], given.Names()))
	m.settle(&x.after)
}

// send is a REJOIN on its way.
func (m *stepper) send(s *state, r int, floor uint8, names int) {
	k := &s.clients[r]
	request := uint16(1) << (int(floor) + names*(int(m.top())+1))
	if n := &s.nodes[k.node]; k.stale {
		n.stale |= request
	} else {
		n.fresh |= request
	}
	*k = client{}
}

func (m *stepper) read(r, j int) {
	k := &m.s.clients[r]
	recovery := m.recovery(k)
	if recovery.Step(0) != ReadVerb || recovery.Unread()>>j&1 == 0 {
		return
	}
	v := m.s.nodes[j].node(m.tokens)
	if m.readsInactive {
		v.Marker = Marker{Phase: Voting, Me: me}
	}
	answer := v.Read(mes[k.step])
	if answer.Code != OK {
		return
	}
	if m.noFloor {
		answer.Token = Token(m.s.nodes[j].f)
	}
	recovery.Answered(Request{Node: j, Verb: ReadVerb, Nonce: k.nonce()}, answer, true, 0)
	x := m.add(reads, r, j)
	c := &x.after.clients[r]
	c.floor = uint8(recovery.Floor)
	names := slices.Index(fleetNames[:], ParseMarker(answer.Text).Me.Fleet)
	if names < 0 { // sealed on the way back
		names = namesBoth
	}
	c.read[names] |= 1 << j
	m.settle(&x.after)
}

// stage is the progress of the change, shown by the voting nodes.
func (m *stepper) stage(step uint8) Stage {
	var all Memory
	for i := range m.nodes {
		v := m.s.nodes[i].node(m.tokens)
		if v.Marker.Serves(mes[step]) {
			all.Add(&m.fleets[step], i, v.Marker)
		}
	}
	return all.Stage()
}

func (w *world) enough(k *client) bool {
	f := w.readers(k.step, int(k.node))
	if w.oldReads && f.Now.Knows(k.memory().All()) {
		return true
	}
	r := w.recovery(k)
	return r.Step(1) == RejoinVerb
}

// settle does everything that follows at once, and drops data without further effect.
func (m *stepper) settle(s *state) {
	for r := range m.clients {
		k := &s.clients[r]
		if !m.keepStale && (k.phase == waiting || k.phase == reading) &&
			(k.stale || !s.nodes[k.node].isProvisional()) {
			*k = client{} // its nonce is of no use any more
		}
		if k.phase == waiting && k.wait == 0 {
			k.phase = reading
		}
		if k.phase == reading && !m.lazy && k.by == 0 && m.enough(k) {
			m.send(s, r, k.floor, m.names(k))
		}
	}
	for i := range m.nodes {
		n := &s.nodes[i]
		if !m.keepStale {
			n.stale = 0
			if !n.isProvisional() && n.marker < sealed {
				n.fresh = 0
			}
		}
	}
}
