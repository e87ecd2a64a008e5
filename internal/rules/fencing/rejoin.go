package fencing

import (
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// Step is the next thing to do for a node that has forgotten.
type Step uint8

// The steps, in their order.
const (
	SendNotice Step = iota // then Noticed, when its reply is received
	WaitUntil              // Due
	SendReads              // to active others, then Learned for each reply
	SendRejoin             // with Nonce and Floor, once; then Rejoined, or Drop if there is no reply
	Finished               // the node has a vote again
)

// Rejoin is how one client brings one node back. Several clients may do it at once, each
// with a Rejoin of its own, and each may stop at any point. It is a plain value: time is
// handed in, on any clock that counts elapsed time, suspension included.
type Rejoin struct {
	Nonce string        // the one that everything after NOTICE is bound to
	Due   time.Duration // when the quarantine ends
	Floor uint64        // the largest token that was learned
	Given string        // what the marker is to name, by an operator, with the floor: nothing is read

	fleet Fleet
	node  int
	step  Step
	read  Memory
}

// BeginRejoin is for a node that answered Amnesia.
func BeginRejoin(f Fleet, node int) Rejoin { return Rejoin{fleet: f, node: node} }

// BeginInit is for a node that an operator gives its vote, with a marker that is to name names: at the first start of a
// fleet, and where too many nodes have forgotten. The steps are the same, the quarantine included,
// but for the reads: the floor is [InitFloor].
func BeginInit(f Fleet, node int, names string) Rejoin {
	return Rejoin{fleet: f, node: node, Given: names}
}

// InitFloor is the floor that an operator's call gives, once the quarantine is over. atLeast
// is not less than any token of a lock that was granted before it, and blocks have k tokens:
// holders after the first may have some that atLeast does not know. shown is what the
// other nodes show, with a vote or without, and now is the client's time: if atLeast is
// what it must be these are not needed, and they do no harm.
func InitFloor(atLeast uint64, k int, shown, now uint64) uint64 {
	return max(atLeast+uint64(k), shown, now)
}

// Next returns the next step at the time now.
func (r *Rejoin) Next(now time.Duration) Step {
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

// Unread is the nodes that may still be read.
func (r *Rejoin) Unread() quorum.Set {
	return r.fleet.Nodes() &^ (r.read.All() | 1<<r.node)
}

// Noticed takes the reply to NOTICE, or any later word of the node about its marker.
// received is a time at or after the receipt of the reply: attempts that began between
// the sending and the execution of NOTICE may have the node's vote of the life before,
// and must have ended too.
func (r *Rejoin) Noticed(a Answer, received time.Duration) {
	switch {
	case a.Code == Active:
		r.step = Finished
	case a.Code != Amnesia || a.Text == "":
		r.Drop()
	case r.step == SendNotice || a.Text != r.Nonce:
		r.Drop()
		r.step, r.Nonce, r.Due = WaitUntil, a.Text, received+r.fleet.Quarantine
	}
}

// Learned takes the reply of a node to a READ that was sent on this Rejoin's word, for
// nonce. An answer for an earlier nonce, or before the quarantine's end, counts nothing:
// the node that was read may have given a vote since, to an attempt that is still counted.
func (r *Rejoin) Learned(nonce string, node int, a Answer) {
	if r.step != SendReads || nonce != r.Nonce || a.Code != OK || a.Token > MaxToken || node == r.node {
		return
	}
	r.read.Add(&r.fleet, node, ParseMarker(a.Text))
	r.Floor = max(r.Floor, a.Token)
}

// Rejoined takes the reply to REJOIN.
func (r *Rejoin) Rejoined(a Answer, received time.Duration) {
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
