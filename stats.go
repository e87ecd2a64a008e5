package redlock

import (
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/quorum"
)

// Stats returns the counts since New and the state of the nodes, all of one moment.
// It blocks while another goroutine is at the sockets: for microseconds, or up to 5 ms
// if that one waits for its own replies. It allocates Stats.Nodes. Callbacks may call it.
func (c *Client) Stats() Stats {
	nodes := make([]NodeStats, 0, c.group.Len())
	s := c.group.Stats(func(n conn.Node, v engine.Votes) {
		nodes = append(nodes, NodeStats{newNode(n), v[quorum.Granted], v[quorum.Denied], v[quorum.Failed]})
	})
	kept, lost := c.group.Kept()
	inLine, handedOver := c.group.InLine()
	return Stats{
		Results(s.Acquire), Results(s.Extend), Results(s.Release),
		s.Cleanups, s.Batches, s.Operations, held(s), kept, lost, inLine, handedOver, Waits(c.group.Waits()), s.Waiting, s.InFlight, nodes,
	}
}

// held is how many locks were not given back. A release whose caller has gone is sent.
func held(s engine.Stats) int {
	return max(0, int(s.Acquire.Won)-int(s.Release.Won)-int(s.Release.Denied)-int(s.Release.Cancelled))
}

// Nodes returns the state of the nodes, in the order of Config.Nodes. It blocks and
// allocates as Stats does.
func (c *Client) Nodes() []Node {
	nodes := make([]Node, 0, c.group.Len())
	c.group.Stats(func(n conn.Node, _ engine.Votes) { nodes = append(nodes, newNode(n)) })
	return nodes
}

// Stats has the counts of a client since New. It counts attempts: an Acquire
// that tries three times is counted three times.
type Stats struct {
	Acquire, Extend, Release Results

	Cleanups   uint64 // releases behind acquires that failed; not counted in Release
	Batches    uint64 // writes, each to all nodes
	Operations uint64 // in those batches, cleanups among them
	Held       int    // locks acquired and not given back, those that have expired among them
	KeptAlive  int    // locks that are kept alive
	Lost       uint64 // locks that were lost while they were kept alive
	InLine     int    // callers that wait for a lock that another has: Acquire
	HandedOver uint64 // locks that passed from one holder to the next inside the process
	Waits      Waits  // calls of Acquire that have waited
	Waiting    int    // operations to be sent, about Config.MaxWaiting and the cleanups at most
	InFlight   int    // operations sent and without a verdict
	Nodes      []NodeStats
}

// Results is how the attempts at one kind of operation have ended. Each is counted
// once. A call with wrong arguments, an ended context or a released Lock is none.
type Results struct {
	Won       uint64
	Denied    uint64 // ErrTaken or ErrNotHeld
	NoQuorum  uint64
	Expired   uint64
	Cancelled uint64 // the context's error, or Cancel
	Refused   uint64 // ErrBusy or ErrClosed
}

// Waits is how calls of Acquire, AcquireAll and Do have waited for their locks, counted when
// that ends. One that has its lock, or an error, from its first attempt at once has not
// waited. Each of the others counts once, in one field.
type Waits struct {
	Granted    uint64 // the nodes granted the lock, to a later attempt or to one in line
	HandedOver uint64 // the last holder passed it on, inside the process
	GaveUp     uint64 // the context ended
	UsedUp     uint64 // Retry.Attempts were used up
	Closed     uint64 // ErrClosed
	Failed     uint64 // another error, of Config.Rand

	// Total is the time of all of them, from the call of Acquire to its end, attempts
	// included; Longest is the longest.
	Total, Longest time.Duration
}

// NodeStats is a node and its votes on all operations that were sent. The votes of a
// node that is down or too late have failed.
type NodeStats struct {
	Node
	Granted, Denied, Failed uint64
}

// Node is how a node is at one moment.
type Node struct {
	Index int    // its place in Config.Nodes, from 0
	Addr  string // without credentials
	Up    bool   // it has a connection
	Err   error  // why it has none, a *conn.Error; nil while up; never a credential

	Guarded time.Duration // how long it still must not vote; 0 if it may
	// Server is the product and version that the server showed, or "". Dialect is
	// the commands that release and extend a lock there: "EVALSHA", or "DELIFEQ,
	// SET IFEQ" for example. Both stay when the connection ends.
	Server, Dialect string
	Connects        uint64 // connections it has had, the present one included
	// RoundTrips counts the batches that it has answered to the last reply. RoundTrip
	// is how long that took, smoothed as in RFC 6298, RoundTripMax the longest: with
	// the node's own work, and until the answer was read: behind those of other nodes
	// that had come by then, and up to 5 ms later where a quorum had answered before.
	RoundTrips              uint64
	RoundTrip, RoundTripMax time.Duration
	InFlight                int // replies that it owes
}

func newNode(n conn.Node) Node {
	return Node{n.Index, n.Addr, n.Up, n.Err, n.Guarded, n.Server, command.Form(n.Form).String(),
		n.Connects, n.RoundTrips, n.RoundTrip, n.RoundTripMax, n.InFlight}
}
