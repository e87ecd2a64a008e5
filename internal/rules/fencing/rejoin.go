package fencing

import (
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/quorum"
)

// Step is the next thing to do for a node that has forgotten.
type Step uint8

const (
	SendNotice Step = iota // then Noticed, when its reply is received
	WaitUntil              // Due, the end of the quarantine
	SendReads              // to active others, then Learned for each reply
	SendRejoin             // with Nonce and Floor, once; then Rejoined, or Drop without a reply
	Finished               // the node has a vote again
)

// Rejoin is how one client brings one node back. Several clients may do it at once, each with a
// Rejoin of its own, and each may stop at any point. It is a plain value: the caller hands in the
// time, on any clock of elapsed time, suspension included.
type Rejoin struct {
	Nonce string        // everything after NOTICE is bound to it
	Due   clock.Instant // when the quarantine ends
	Floor Token         // the largest token learned
	Given string        // what the marker is to name, by an operator. The floor is given too: nothing is read

	fleet Fleet
	node  int
	step  Step
	read  Memory
}

// BeginRejoin is for a node that answered Amnesia.
func BeginRejoin(f Fleet, node int) Rejoin { return Rejoin{fleet: f, node: node} }

// BeginInit is for a node that gets its vote from an operator: at the first start of a fleet, and
// where too many nodes have forgotten. names is what its marker is to name. The steps are the same,
// the quarantine included, but for the reads: the floor is [InitFloor].
func BeginInit(f Fleet, node int, names string) Rejoin {
	return Rejoin{fleet: f, node: node, Given: names}
}

// InitFloor is the floor given by an operator's call, once the quarantine is over. atLeast is not
// less than any token of a lock granted before the call. Blocks have k tokens: holders after the
// first may have some unknown to atLeast. shown is what the other nodes show, with a vote or
// without, and now is the client's time. Beside a correct atLeast these are not needed, and do no
// harm.
func InitFloor(atLeast Token, k int, shown Token, now uint64) Token {
	return max(atLeast+Token(k), shown, Token(now))
}

// Next returns the next step at the time now.
func (r *Rejoin) Next(now clock.Instant) Step {
	if r.step == WaitUntil && now >= r.Due {
		r.step = SendReads
	}
	if r.step == SendReads && r.Fleet() != "" {
		r.step = SendRejoin
	}
	return r.step
}

// Fleet is what the node's marker is to name, or empty while too few nodes have been read.
func (r *Rejoin) Fleet() string {
	if r.Given != "" {
		return r.Given
	}
	return r.read.Names(&r.fleet)
}

// Unread is the nodes still to be read, if need be.
func (r *Rejoin) Unread() quorum.Set {
	return r.fleet.Nodes() &^ (r.read.All() | quorum.Only(r.node))
}

// Noticed takes the reply to NOTICE, or any later word of the node about its marker. received is a
// time at or after the receipt of the reply: an attempt begun between the sending and the execution
// of NOTICE may have a vote of the node's earlier life, and must have ended too.
func (r *Rejoin) Noticed(a Answer, received clock.Instant) {
	switch {
	case a.Code == Active:
		r.step = Finished
	case a.Code != Amnesia || a.Text == "":
		r.Drop()
	case r.step == SendNotice || a.Text != r.Nonce:
		r.Drop()
		r.step, r.Nonce, r.Due = WaitUntil, a.Text, received.Add(r.fleet.Quarantine)
	}
}

// Learned takes a node's reply to a READ sent for this Rejoin and nonce. An answer for an earlier
// nonce, or before the quarantine's end, counts nothing: the node may have voted since, for an
// attempt still counting its votes.
func (r *Rejoin) Learned(nonce string, node int, a Answer) {
	if r.step != SendReads || nonce != r.Nonce || a.Code != OK || a.Token > MaxToken || node == r.node {
		return
	}
	r.read.Add(&r.fleet, node, ParseMarker(a.Text))
	r.Floor = max(r.Floor, a.Token)
}

// Rejoined takes the reply to REJOIN.
func (r *Rejoin) Rejoined(a Answer, received clock.Instant) {
	if a.Code == OK {
		r.step = Finished
		return
	}
	r.step = SendNotice
	r.Noticed(a, received)
}

// Drop goes back to the beginning: the node has another nonce, or REJOIN got no reply. A
// REJOIN is never sent again, and reads are never used for another nonce.
func (r *Rejoin) Drop() { *r = Rejoin{fleet: r.fleet, node: r.node, Given: r.Given} }
