package fencing

import "github.com/redlock-go/redlock/quorum"

// Change is how an operator's call, by a client of both configurations, makes the next one suffice
// alone. It is a plain value.
//
// It seals nodes (SEAL) until a quorum of each configuration is sealed at one moment. When the locks
// of the clients refused from then on have ended, it seals once more: a node with the nonce of the
// look before was sealed all the time in between, and has not forgotten. If these are a quorum of
// the present configuration, nodes of the next one are opened.
type Change struct {
	fleet  Fleet
	before map[int]string // the nonces of the look before
	now    map[int]string // those of this one
	floor  Token
}

// BeginChange is for a fleet with a Next.
func BeginChange(f Fleet) Change { return Change{fleet: f} }

// Begin begins to look: all nodes are to be sealed. The look before is over.
func (c *Change) Begin() { c.before, c.now = c.now, map[int]string{} }

// Sealed takes the answer of a node to Seal, in this look.
func (c *Change) Sealed(node int, a Answer) {
	if a.Code == OK && a.Token <= MaxToken {
		m := ParseMarker(a.Text)
		if m.Me.Fleet == c.fleet.Next.Name {
			m.Nonce = openNonce // opened by an earlier call: clients of the present one were refused before
		}
		c.now[node] = m.Nonce
		c.floor = max(c.floor, a.Token)
	}
}

// Complete reports whether a quorum of each configuration was sealed in this look.
func (c *Change) Complete() bool { return c.fleet.IsQuorum(c.set(false)) }

// Confirmed reports whether nodes may be opened: the look before is confirmed by this one.
func (c *Change) Confirmed() bool { return c.Complete() && c.fleet.Now.IsQuorum(c.set(true)) }

// set is the nodes of this look, or those with the same nonce in the look before.
func (c *Change) set(same bool) (nodes quorum.Set) {
	for node, nonce := range c.now {
		if !same || c.before[node] == nonce {
			nodes.Add(node)
		}
	}
	return nodes
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

// Done reports whether an earlier call was confirmed: each quorum of the next configuration has a
// node opened by it. These know all grants, and their knowledge suffices to open others.
func (c *Change) Done() bool { return c.fleet.Next.Knows(c.Opened()) }

// Changes is one change for each group of a client. A key of one group may have been in another. So
// all are looked at together: none is opened before all are confirmed, by a look begun when all
// were complete, and the floor is the largest of all.
type Changes []Change

// Begin begins to look, in all groups.
func (all Changes) Begin() {
	for i := range all {
		all[i].Begin()
	}
}

// Complete reports whether all groups are, or have been changed before.
func (all Changes) Complete() bool { return all.are((*Change).Complete) }

// Confirmed reports whether nodes may be opened.
func (all Changes) Confirmed() bool { return all.are((*Change).Confirmed) }

func (all Changes) are(it func(*Change) bool) bool {
	for i := range all {
		if c := &all[i]; !c.Done() && !it(c) {
			return false
		}
	}
	return true
}

// Opens returns the REJOIN for a node of the next configuration once the changes are Confirmed. It
// is false of all others, of unsealed nodes, and of open ones.
func (all Changes) Opens(group, node int) (Request, bool) {
	c, floor := &all[group], Token(0)
	for i := range all {
		floor = max(floor, all[i].floor)
	}
	nonce, found := c.now[node]
	return Request{Node: node, Verb: RejoinVerb, Nonce: nonce, Floor: floor, Fleet: c.fleet.Next.Name},
		found && nonce != openNonce && c.fleet.Next.Nodes.Has(node)
}

// openNonce stands for the nonce of an open node.
const openNonce = "open"
