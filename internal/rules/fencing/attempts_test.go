package fencing_test

import (
	"github.com/redlock-go/redlock/quorum"

	. "github.com/redlock-go/redlock/internal/rules/fencing"
)

// Steps of attempts, and of the nodes answering them.

func (m *stepper) attemptSteps() {
	s := m.s
	for k := range m.attempts {
		if s.attempts[k].phase == unstarted {
			m.start(k)
			return // attempts are numbered in the order of their start
		}
		if s.attempts[k].phase == running && m.lazy {
			m.end(k)
		}
		for i := range m.nodes {
			m.vote(k, i)
		}
	}
}

func (m *stepper) start(k int) {
	x := m.add(starts, k)
	b := &x.after.attempts[k]
	b.phase = running
	for _, a := range m.s.attempts[:k] {
		b.late = b.late || m.granted(a) && m.last(a) >= b.token
	}
}

// vote is the acquire of attempt k executed by node i.
func (m *stepper) vote(k, i int) {
	n, a := &m.s.nodes[i], m.s.attempts[k]
	if m.fleets[a.step].Nodes()>>i&1 == 0 {
		return
	}
	v := n.node(m.tokens)
	if v.Acquire(m.client(a.step), theKey, m.blockOf(a.token), false).Code != OK {
		return
	}
	x := m.add(votes, k, i)
	c := &x.after.nodes[i]
	c.keep(&v)
	if a.phase != running {
		return
	}
	c.votes |= 1 << k
	if !m.lazy && m.quorum(x, k) {
		m.succeed(x, k)
	}
}

// end ends an attempt at any time, with or without success.
func (m *stepper) end(k int) {
	x := m.add(givesUp, k)
	x.after.attempts[k].phase, x.after.attempts[k].late = ended, false
	m.forgetVotes(&x.after, k)
	m.settle(&x.after)
	x = m.add(decides, k)
	if m.quorum(x, k) {
		m.succeed(x, k)
	} else {
		m.steps = m.steps[:len(m.steps)-1]
	}
}

func (m *stepper) blockOf(token uint8) Block {
	return Block{Token(token), Token(token) + Token(m.block) - 1}
}

// quorum reports whether attempt k has one, and forgets its votes then.
func (m *stepper) quorum(x *step, k int) bool {
	nodes := quorum.Set(0)
	for i := range m.nodes {
		nodes |= quorum.Set(x.after.nodes[i].votes>>k&1) << i
	}
	if f := m.fleets[x.after.attempts[k].step]; !f.IsQuorum(nodes) {
		return false
	}
	m.forgetVotes(&x.after, k)
	return true
}

func (m *stepper) forgetVotes(s *state, k int) {
	for i := range m.nodes {
		s.nodes[i].votes &^= 1 << k
	}
	for r := range m.clients {
		s.clients[r].wait &^= 1 << k
	}
}

func (m *stepper) succeed(x *step, k int) {
	b := &x.after.attempts[k]
	b.phase = succeeded
	if b.late {
		x.broken = "the token is not above one that was granted before the attempt started"
	}
	for j, a := range x.after.attempts[:m.attempts] {
		if j != k && m.granted(a) && m.overlap(a, *b) {
			x.broken = "two attempts share a token"
		}
	}
	b.late = false
	m.settle(&x.after)
}
