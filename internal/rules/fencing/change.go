package fencing

import "github.com/redlock-go/redlock/quorum"

// Looks holds the states of the nodes of each of a client's groups, at one time. An operator's call, by a client of
// both configurations, uses it to make the next configuration suffice alone.
//
// The call seals nodes (SEAL) until a quorum of each configuration is sealed at one moment. When the locks of the
// clients refused from then on have ended, it seals once more: a node with the nonce of the look before was sealed all
// the time in between, and has not forgotten. If these are a quorum of the present configuration, nodes of the next one
// are opened.
//
// A key of one group may have been in another. So all are looked at together: none is opened before all are confirmed,
// by a look begun when all were sealed, and the floor is the largest of all.
type Looks []*Look

// Are reports whether all groups are sealed. With confirmed, they must have been sealed since the look before too; then
// nodes may be opened. A group opened by an earlier call counts as both: each quorum of the next configuration has a
// node that serves only its clients. These nodes know all grants, and suffice to open others.
func (all Looks) Are(confirmed bool, before Looks) bool {
	for i, l := range all {
		f, nodes, same := &l.fleet, l.Memory.Both|l.Memory.Next, quorum.Set(0)
		if before != nil {
			same = l.Memory.Next & before[i].Memory.Next
			for node, nonce := range l.Nonces {
				if nonce != "" && nodes.Has(node) && before[i].Nonces[node] == nonce {
					same.Add(node)
				}
			}
		}
		is := f.IsQuorum(nodes) && (!confirmed || f.Now.IsQuorum(same))
		if !is && !f.Next.Knows(l.Memory.Next) {
			return false
		}
	}
	return true
}

// Token is the largest token shown.
func (all Looks) Token() (largest Token) {
	for _, l := range all {
		largest = max(largest, l.Token)
	}
	return largest
}

// Opens returns the nonce of a node to be opened: it serves only clients of the next configuration once that is
// confirmed. The result is false for nodes outside that configuration, for nodes not sealed, and for open nodes.
func (l *Look) Opens(node int) (nonce string, is bool) {
	nonce = l.Nonces[node]
	return nonce, nonce != "" && l.Memory.Both.Has(node) && l.fleet.Next.Nodes.Has(node)
}
