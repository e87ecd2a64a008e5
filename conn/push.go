package conn

import "github.com/redlock-go/redlock/resp"

// This file is what a node does with pushes, the frames of RESP3 that answer no
// command. The owner hears of each, and they are not counted as progress: a server
// that sends pushes in place of replies is silent to those who wait for replies.
//
// No push ends the connection for its size, since it may be true: a server that
// drops all its keys names many at once. What the decoder's limits or the buffer
// cannot hold is skipped, and the owner does not hear of it.

// Speaks3 says whether a node has a connection on which it speaks RESP3, and so may
// send pushes.
func (f *Fleet) Speaks3(node int) bool {
	n := f.nodes[node]
	return n.sock != nil && n.id.resp3
}

// Connection is the number of a node's present connection, counted from 1, or 0
// while it has none. What was set up on one connection does not hold on another.
func (f *Fleet) Connection(node int) uint64 {
	if n := f.nodes[node]; n.sock != nil {
		return n.history.connects
	}
	return 0
}

// pushed hands the decoded value, a push, to the owner.
func (n *node) pushed() {
	if !n.id.resp3 {
		n.fault = &resp.ProtocolError{Reason: "push in RESP2"}
		return
	}
	if on := n.fleet.cfg.OnPush; on != nil {
		on(n.index, &n.value)
	}
}

// beginSkip is called with a push at in[r] that the decoder has refused, which is
// a fault of the connection only if Skip finds it malformed.
func (n *node) beginSkip() {
	n.fault = nil
	n.decoder.Reset()
	n.skipping = true
}

// skip reads over bytes of a push. It returns false if it needs more of them.
func (n *node) skip() bool {
	k, err := n.decoder.Skip(n.in[n.r:n.w])
	n.r += k
	switch err {
	case nil:
		n.skipping = false
	case resp.ErrIncomplete:
		return false
	default:
		n.fault = err
	}
	return true
}

// RunID names the present life of a node's server, or the last that was met: each start of a
// server makes one.
func (f *Fleet) RunID(node int) string { return f.nodes[node].id.runID }
