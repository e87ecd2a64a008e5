package fencing

import "github.com/redlock-go/redlock/quorum"

// Memory holds the nodes that remember, by the configurations named in their markers. It is the only rule to identify
// them: for a node coming back, for the error of a lost round, and for the acts of an operator.
type Memory struct{ Now, Next, Both quorum.Set }

// Add notes a node with a voting marker.
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

// All returns all of them.
func (m Memory) All() quorum.Set { return m.Now | m.Next | m.Both }

// Without returns the memory without nodes.
func (m Memory) Without(nodes quorum.Set) Memory {
	return Memory{m.Now &^ nodes, m.Next &^ nodes, m.Both &^ nodes}
}

// Perhaps returns the memory with more nodes, of any marker: they may remember.
func (m Memory) Perhaps(nodes quorum.Set) Memory {
	return Memory{m.Now | nodes, m.Next | nodes, m.Both | nodes}
}

// Names returns the configurations for the marker of a node coming back, or is empty if too many nodes have forgotten.
//
// Each configuration named by a marker must have been read: enough of its nodes to have one in each quorum. While no
// node is sealed, all locks were granted by quorums of the first, and its nodes know of them all. If only the second is
// named, the change is done, and its nodes know of them all. In between, the locks of clients with one configuration
// are known only to its nodes. A forgetful node is then sealed too: unsealed it could be one of a quorum for clients
// refused by the others.
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

// Stage is the progress of a change, shown by the markers seen. A later stage counts.
type Stage uint8

const (
	Begun  Stage = iota // clients of the present configuration may be served
	Sealed              // they are refused
	Opened              // and clients of the next one are served
)

// Stage returns the stage shown by the nodes that remember.
func (m Memory) Stage() Stage {
	switch {
	case m.Next != 0:
		return Opened
	case m.Both != 0:
		return Sealed
	}
	return Begun
}

// At returns the configurations for the markers of nodes given their vote by an operator at a stage.
func (f *Fleet) At(s Stage) string {
	switch {
	case f.Next.Nodes == 0 || s == Begun:
		return f.Now.Name
	case s == Sealed:
		return f.Name()
	}
	return f.Next.Name
}
