package fencing

import (
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// Configuration holds the settings that all clients of a fleet must share.
type Configuration struct {
	Name   string     // a digest of nodes, quorum and longest TTL, without colon and plus
	Nodes  quorum.Set // the client's nodes in it
	Quorum int
}

// IsQuorum reports whether nodes are a quorum.
func (c Configuration) IsQuorum(nodes quorum.Set) bool {
	return c.Nodes != 0 && (c.Nodes&nodes).Len() >= c.Quorum
}

// Knows reports whether each quorum has one of nodes: N - Quorum + 1 of them. Together these nodes know all acts of
// quorums.
func (c Configuration) Knows(nodes quorum.Set) bool {
	return c.Nodes != 0 && (c.Nodes&^nodes).Len() < c.Quorum
}

// Fleet is the figures for a client's half of the protocol.
type Fleet struct {
	Now  Configuration
	Next Configuration // during a change; else the zero value

	// Quarantine is the longest TTL of both, and the drift between two clients' clocks.
	Quarantine time.Duration
}

// Name is the fleet's name in the client's [Me].
func (f *Fleet) Name() string {
	if f.Next.Name == "" {
		return f.Now.Name
	}
	return f.Now.Name + "+" + f.Next.Name
}

// Nodes returns all nodes.
func (f *Fleet) Nodes() quorum.Set { return f.Now.Nodes | f.Next.Nodes }

// IsQuorum reports whether nodes are a quorum of each configuration.
func (f *Fleet) IsQuorum(nodes quorum.Set) bool {
	return f.Now.IsQuorum(nodes) && (f.Next.Nodes == 0 || f.Next.IsQuorum(nodes))
}

// blocks reports whether the nodes of a configuration outside the set are no quorum.
func (f *Fleet) blocks(nodes quorum.Set) bool {
	return f.Now.Knows(nodes) || f.Next.Knows(nodes)
}
