package conn

import (
	"time"
)

// Node is the state of one node of a [Fleet] at one moment.
type Node struct {
	Addr string // without credentials
	Up   bool   // it has a connection, or rests
	// Rests: its connection was closed while it was idle, and is being replaced. Resumed: the present one has replaced such a
	// one, with the same server. Neither is news to users.
	Rests, Resumed bool
	Err            error // why it has none, an *Error; nil while up; never a credential
	// Lasting: only a change of configuration ends Err, here or on the server. Unfit: the node must not be used,
	// healthy or not. It is another node's second address, a replica, part of a cluster, or a sentinel.
	Lasting, Unfit bool
	// Volatile holds the settings of a node declared persistent that show the contrary.
	Volatile string
	// Server is the one of the present connection, or of the last. It and the Form stay when the connection ends.
	Server Server
	Form   Form
	// Connection is the number of the present connection, from 1, and 0 without one. The settings of one connection
	// do not hold on another.
	Connection uint64
	// Pushes reports whether pushes can come: the connection is in RESP3.
	Pushes bool
	History
	// InFlight is how many replies it owes.
	InFlight int
}

// Node returns the state of a node. It is called with the lock held, and allocates nothing.
func (f *Fleet) Node(i int) Node {
	n := f.nodes[i]
	s := Node{
		Addr: n.addr, Up: n.sock != nil, Rests: n.isResting(),
		Server: n.says(&n.id), Form: n.form, History: n.history, InFlight: n.owed.replies,
	}
	if n.persistent {
		s.Volatile = n.id.volatile
	}
	switch {
	case s.Rests:
	case s.Up:
		s.Connection, s.Pushes, s.Resumed = s.Connects, n.id.resp3, n.resumed
	default:
		s.Err = n.cause.cause
		s.Lasting, s.Unfit = permanent(s.Err), classOf(s.Err, misfits) != nil
	}
	return s
}

// History holds the statistics of a node over all its connections.
type History struct {
	// Connects is how many connections it has had, the present one included.
	Connects uint64
	// RoundTrips is how many batches it has answered to the last reply.
	RoundTrips uint64
	// RoundTrip is how long they took, smoothed: each counts for an eighth, as in RFC 6298. RoundTripMax is the
	// longest. Both include the node's own work, and the time until the reply was read: replies found together are
	// read one after the other. A reply after the quorum's may be read up to 5 ms late.
	RoundTrip, RoundTripMax time.Duration
}

// trip counts a batch answered after d.
func (h *History) trip(d time.Duration) {
	h.RoundTrips++
	if h.RoundTrips == 1 {
		h.RoundTrip = d
	} else {
		h.RoundTrip += (d - h.RoundTrip) / 8
	}
	h.RoundTripMax = max(h.RoundTripMax, d)
}
