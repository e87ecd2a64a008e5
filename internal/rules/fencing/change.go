package fencing

import "github.com/redlock-go/redlock/quorum"

// Changes is how an operator's call, by a client of both configurations, makes the next one suffice alone: a Change for
// each of its groups. It is a plain value.
//
// It seals nodes (SEAL) until a quorum of each configuration is sealed at one moment. When the locks of the clients
// refused from then on have ended, it seals once more: a node with the nonce of the look before was sealed all the time
// in between, and has not forgotten. If these are a quorum of the present configuration, nodes of the next one are
// opened.
//
// A key of one group may have been in another. So all are looked at together: none is opened before all are confirmed,
// by a look begun when all were complete, and the floor is the largest of all.
type Changes []Change

// Change is that of one group, with its Next.
type Change struct {
	Fleet  Fleet
	before map[int]string // the nonces of the look before
	now    map[int]string // those of this one
	floor  Token
}

// openNonce stands for the nonce of an open node.
const openNonce = "open"

// Begin begins to look: all nodes are to be sealed. The look before is over.
func (all Changes) Begin() {
	for i := range all {
		all[i].before, all[i].now = all[i].now, map[int]string{}
	}
}

// Sealed takes the answer of a node to Seal, in this look.
func (c *Change) Sealed(node int, a Answer) {
	if a.Code == OK && a.Token <= MaxToken {
		m := ParseMarker(a.Text)
		if m.Me.Fleet == c.Fleet.Next.Name {
			m.Nonce = openNonce // opened by an earlier call: clients of the present one were refused before
		}
		c.now[node] = m.Nonce
		c.floor = max(c.floor, a.Token)
	}
}

// Are reports whether a quorum of each configuration was sealed in this look, in all groups. Where it is to be
// confirmed, one of the present configuration has the nonces of the look before too: nodes may be opened. A group that
// was confirmed by an earlier call is all of it: each quorum of the next configuration has a node opened by that. These
// know all grants, and suffice to open others.
func (all Changes) Are(confirmed bool) bool {
	for i := range all {
		c := &all[i]
		var nodes, same quorum.Set
		for node, nonce := range c.now {
			nodes.Add(node)
			if c.before[node] == nonce {
				same.Add(node)
			}
		}
		is := c.Fleet.IsQuorum(nodes) && (!confirmed || c.Fleet.Now.IsQuorum(same))
		if !is && !c.Fleet.Next.Knows(c.Opened()) {
			return false
		}
	}
	return true
}

// Opened is the nodes serving clients of the next configuration alone.
func (c *Change) Opened() (nodes quorum.Set) {
	for node, nonce := range c.now {
		if nonce == openNonce {
			nodes.Add(node)
		}
	}
	return nodes
}

// Opens returns the REJOIN for a node of the next configuration once the changes are confirmed. It is false of all
// others, of unsealed nodes, and of open ones.
func (all Changes) Opens(group, node int) (Request, bool) {
	c, floor := &all[group], Token(0)
	for i := range all {
		floor = max(floor, all[i].floor)
	}
	nonce, found := c.now[node]
	return Request{Node: node, Verb: RejoinVerb, Nonce: nonce, Floor: floor, Fleet: c.Fleet.Next.Name},
		found && nonce != openNonce && c.Fleet.Next.Nodes.Has(node)
}
