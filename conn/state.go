package conn

import "time"

// Node is what a [Fleet] knows of one of its nodes at one moment.
type Node struct {
	Index int    // its place in the configuration, from 0
	Addr  string // without credentials
	Up    bool   // it has a connection
	Err   error  // why it has none, an *Error; nil while up; never a credential

	Guarded time.Duration // how long it still must not vote; 0 if it may
	// Server is the product and version that the server showed, or "". It and the
	// Dialect stay when the connection ends.
	Server   string
	Dialect  Dialect
	Connects uint64 // connections it has had, the present one included
	// RoundTrips counts the batches that it has answered to the last reply. RoundTrip
	// is how long that took, smoothed: each counts for an eighth, as in RFC 6298.
	// RoundTripMax is the longest. The node's own work is in them, and where a quorum
	// had answered before, up to 5 ms until the owner read the reply.
	RoundTrips              uint64
	RoundTrip, RoundTripMax time.Duration
	InFlight                int // replies that it owes
}

// Node returns the state of a node. It is called with the lock held, and allocates
// nothing unless the fleet is closed.
func (f *Fleet) Node(i int) Node {
	n := f.nodes[i]
	return Node{
		Index: i, Addr: n.addr,
		Up: n.sock != nil, Err: n.why(),
		Guarded: f.guardedFor(n), Server: n.server, Dialect: n.dialect,
		Connects:   n.history.connects,
		RoundTrips: n.history.trips, RoundTrip: n.history.smoothed, RoundTripMax: n.history.longest,
		InFlight: n.owed.replies,
	}
}

// why returns why a node is down, or nil: an *Error, without the ErrNotSent that its
// batches get.
func (n *node) why() error {
	if n.sock != nil {
		return nil
	}
	err := n.cause
	if marked, ok := err.(*notSent); ok {
		err = marked.cause
	}
	if _, ok := err.(*Error); !ok {
		err = &Error{Addr: n.addr, Op: "write", Err: err}
	}
	return err
}

// MarshalText returns the text of Error, so that a [Node] in JSON says why it is down.
func (e *Error) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// history is what the fleet remembers of a node over all its connections.
type history struct {
	connects uint64
	trips    uint64
	smoothed time.Duration
	longest  time.Duration
}

// trip counts a batch that was answered after d.
func (h *history) trip(d time.Duration) {
	if h.trips++; h.trips == 1 {
		h.smoothed = d
	} else {
		h.smoothed += (d - h.smoothed) / 8
	}
	h.longest = max(h.longest, d)
}

// rose counts a connection that came up, and calls OnUp.
func (f *Fleet) rose(n *node) {
	n.history.connects++
	if f.cfg.OnUp != nil {
		f.cfg.OnUp(n.index)
	}
}

// fell calls OnDown for a connection that ended, but not when the fleet is closed.
func (f *Fleet) fell(n *node) {
	if f.cfg.OnDown != nil && !f.closed {
		f.cfg.OnDown(n.index)
	}
}
