package fencing

import (
	"math/bits"
	"time"
)

// Configuration is what all clients of a fleet must have in common.
type Configuration struct {
	Name   string // a digest of nodes, quorum and longest TTL, without colon and plus
	Nodes  uint64 // which of the client's nodes are in it, a bit each
	Quorum int
}

// IsQuorum reports whether nodes, a bit each, are a quorum.
func (c Configuration) IsQuorum(nodes uint64) bool {
	return c.Nodes != 0 && bits.OnesCount64(c.Nodes&nodes) >= c.Quorum
}

// Knows reports whether each quorum has one of nodes, a bit each: N - Quorum + 1 of them.
// Together these know of all that quorums did.
func (c Configuration) Knows(nodes uint64) bool {
	return c.Nodes != 0 && bits.OnesCount64(c.Nodes&^nodes) < c.Quorum
}

// Fleet is the figures that a client's half of the protocol needs.
type Fleet struct {
	Now  Configuration
	Next Configuration // while a change is under way; else the zero value

	// Quarantine is the longest TTL of both, and the drift between two clients' clocks.
	Quarantine time.Duration
}

// Name is what the client's [Me] has of it.
func (f *Fleet) Name() string {
	if f.Next.Name == "" {
		return f.Now.Name
	}
	return f.Now.Name + "+" + f.Next.Name
}

// Nodes is all nodes, a bit each.
func (f *Fleet) Nodes() uint64 { return f.Now.Nodes | f.Next.Nodes }

// IsQuorum reports whether nodes are a quorum of each configuration.
func (f *Fleet) IsQuorum(nodes uint64) bool {
	return f.Now.IsQuorum(nodes) && (f.Next.Nodes == 0 || f.Next.IsQuorum(nodes))
}

// blocks reports whether the nodes of a configuration that are left without nodes are no quorum.
func (f *Fleet) blocks(nodes uint64) bool {
	return f.Now.Knows(nodes) || f.Next.Knows(nodes)
}
