package fencing

import "github.com/redlock-go/redlock/quorum"

// Looks is what the nodes of each of a client's groups show, at one time. By it an operator's call, of a client of both
// configurations, makes the next one suffice alone.
//
// The call seals nodes (SEAL) until a quorum of each configuration is sealed at one moment. When the locks of the
// clients refused from then on have ended, it seals once more: a node with the nonce of the look before was sealed all
// the time in between, and has not forgotten. If these are a quorum of the present configuration, nodes of the next one
// are opened.
//
// A key of one group may have been in another. So all are looked at together: none is opened before all are confirmed,
// by a look begun when all were sealed, and the floor is the largest of all.
type Looks []*Look

// Are reports whether all groups are sealed. Where it is to be confirmed, they have been since the look before: nodes
// may be opened. A group that was opened by an earlier call is both: each quorum of the next configuration has a node
// that serves its clients alone. These know all grants, and suffice to open others.
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

// Opens returns the nonce of a node that is to serve clients of the next configuration alone once that is confirmed. It
// is false of nodes that are not of it, are not sealed, or are open.
func (l *Look) Opens(node int) (nonce string, is bool) {
	nonce = l.Nonces[node]
	return nonce, nonce != "" && l.Memory.Both.Has(node) && l.fleet.Next.Nodes.Has(node)
}
