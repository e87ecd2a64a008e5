package fencing

import "github.com/redlock-go/redlock/quorum"

// Memory is the nodes that remember, by what their markers name. It is the one rule for
// who remembers: for a node that comes back, for the error of a lost round, and for the acts of
// an operator.
type Memory struct{ Now, Next, Both quorum.Set }

// Add notes a node that has shown a marker with a vote.
func (m *Memory) Add(f *Fleet, node int, marker Marker) {
	bit := quorum.Only(node)
	switch {
	case marker.Phase != Voting:
	case marker.Me.Fleet == f.Now.Name:
		m.Now |= bit
	case marker.Me.Fleet == f.Next.Name:
		m.Next |= bit
	default: // nodes answer no other clients
		m.Both |= bit
	}
}

// All is all of them.
func (m Memory) All() quorum.Set { return m.Now | m.Next | m.Both }

// Without is the memory without nodes.
func (m Memory) Without(nodes quorum.Set) Memory {
	return Memory{m.Now &^ nodes, m.Next &^ nodes, m.Both &^ nodes}
}

// Perhaps is the memory with nodes that may remember, by any marker.
func (m Memory) Perhaps(nodes quorum.Set) Memory {
	return Memory{m.Now | nodes, m.Next | nodes, m.Both | nodes}
}

// Names is what the marker of a node that comes back is to name, or empty where too many have
// forgotten.
//
// Each configuration that a marker names must have been read: so many of its nodes that each
// quorum has one of them. While no node is sealed all locks were granted by quorums of the
// first: its nodes know of them all. If only the second is named the change is done, and
// its nodes know of them all. In between the locks of clients that have one configuration alone
// are known there only, and a node that forgets is sealed too: else it could be one of
// a quorum of clients that the others refuse.
func (m Memory) Names(f *Fleet) string {
	switch {
	case f.Next.Knows(m.Next):
		return f.Next.Name
	case f.Now.Knows(m.Now):
		return f.Now.Name
	case f.Now.Knows(m.All()) && f.Next.Knows(m.All()):
		return f.Name()
	}
	return ""
}

// IsSplit reports whether each configuration alone suffices to some nodes, by which it locks keys without the other. No change
// leaves that: it seals a quorum of the first before it opens one of the second, and none comes back unsealed. So the
// nodes of the second were given their vote as a fleet of their own.
func (m Memory) IsSplit(f *Fleet) bool { return f.Next.Knows(m.Next) && f.Now.Knows(m.Now) }

// Stage is how far a change has come, by the markers that were seen. A later one counts.
type Stage uint8

// The stages.
const (
	Begun  Stage = iota // clients of the present configuration may be served
	Sealed              // they are refused
	Opened              // and those of the next one are served
)

// Stage is that of the nodes that remember.
func (m Memory) Stage() Stage {
	switch {
	case m.Next != 0:
		return Opened
	case m.Both != 0:
		return Sealed
	}
	return Begun
}

// At is what the markers of nodes name that an operator gives their vote at a stage.
func (f *Fleet) At(s Stage) string {
	switch {
	case f.Next.Nodes == 0 || s == Begun:
		return f.Now.Name
	case s == Sealed:
		return f.Name()
	}
	return f.Next.Name
}
