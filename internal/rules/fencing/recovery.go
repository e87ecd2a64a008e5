package fencing

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/quorum"
)

// Verb is the verb of a request to the member script.
type Verb string

const (
	NoticeVerb  Verb = "notice"
	ResumeVerb  Verb = "resume"
	ReadVerb    Verb = "read"
	RejoinVerb  Verb = "rejoin"
	ShowVerb    Verb = "show"
	RaiseVerb   Verb = "raise"
	CollectVerb Verb = "collect"
	SealVerb    Verb = "seal"
)

// The pauses between two questions about a node's vote: the first, and the longest.
const (
	MinPause = 100 * time.Millisecond
	MaxPause = time.Second
)

// Lapse is the time for which a notice counts if the clients of its fleet do not repeat it. They do repeat it while the
// node has no vote: at least each [MaxPause] and its jitter. The member script has the time as a number.
const Lapse = 10 * time.Second

// Request is one call of the member script. The zero Request is none.
type Request struct {
	Node  int
	Verb  Verb
	Nonce string
	Floor Token  // of RejoinVerb
	Fleet string // of RejoinVerb: the configurations for the marker
}

// Recovery is the part of one client in bringing one node back. It decides on the next question and its node, and takes
// the answer, or its absence. Several clients may do so at once, each with a Recovery of its own, and each may stop at
// any point. It is a plain value: the caller hands in the time, on any clock of elapsed time, suspension included. One
// request is under way at a time.
//
// A node that gets its vote from an operator takes the same steps, quarantine included, except for the reads: its floor
// is at least [InitFloor].
type Recovery struct {
	Fleet Fleet
	Node  int
	Given string // the marker's configurations given by an operator, and nothing is read

	Nonce string        // binds everything after NOTICE; "": not yet told by the node
	Due   clock.Instant // when the quarantine ends
	Floor Token         // the largest token read
	read  Memory

	tried quorum.Set // nodes read since the last pause
	pause time.Duration
	until clock.Instant // the pause ends
	ask   bool          // the node, after the pause
}

// InitFloor is the floor given by an operator's call, once the quarantine is over. atLeast is not less than any token
// of a lock granted before the call. Blocks have k tokens, and holders after the first may have some unknown to
// atLeast. shown has the tokens shown by the other nodes, with a vote or without, and now is the client's time. With a
// correct atLeast both are not needed, and do no harm.
func InitFloor(atLeast Token, k int, shown Token, now uint64) Token {
	return max(atLeast+Token(k), shown, Token(now))
}

// Names returns the configurations for the node's marker, or is empty while too few nodes have been read.
func (r *Recovery) Names() string {
	if r.Given != "" {
		return r.Given
	}
	return r.read.Names(&r.Fleet)
}

// Unread returns the nodes still to be read, if need be.
func (r *Recovery) Unread() quorum.Set {
	return r.Fleet.Nodes() &^ (r.read.All() | quorum.Only(r.Node))
}

// Step returns the verb of the protocol's next request, or none in the quarantine.
func (r *Recovery) Step(now clock.Instant) Verb {
	switch {
	case r.Nonce == "":
		return NoticeVerb
	case now < r.Due:
		return ""
	case r.Names() == "":
		return ReadVerb
	}
	return RejoinVerb // once
}

// Next returns the next request, or the pause before the next call of Next. nonce is new to NOTICE, and voting are the
// nodes known to have a vote. While it waits for the end of a quarantine, or for votes of others, the node is asked
// from time to time: another client may have been faster.
func (r *Recovery) Next(now clock.Instant, nonce string, voting quorum.Set) (q Request, pause time.Duration) {
	step := r.Step(now)
	switch {
	case now < r.until:
		return q, r.until.Sub(now)
	case r.ask || step == NoticeVerb:
		r.ask = false
		return Request{Node: r.Node, Verb: NoticeVerb, Nonce: nonce}, 0
	case step == RejoinVerb:
		return Request{Node: r.Node, Verb: RejoinVerb, Nonce: r.Nonce, Floor: r.Floor, Fleet: r.Names()}, 0
	case step == ReadVerb:
		left := r.Unread() & voting &^ r.tried
		if next := left & r.Fleet.Next.Nodes; next != 0 {
			left = next // once a change is done, nodes of the first alone name both for ever
		}
		if left != 0 { // else too few others have a vote
			node := left.Least()
			r.tried.Add(node)
			return Request{Node: node, Verb: ReadVerb, Nonce: r.Nonce}, 0
		}
	}
	return q, r.rest(now)
}

// rest begins a pause. After it the node is asked.
func (r *Recovery) rest(now clock.Instant) time.Duration {
	r.pause = min(max(2*r.pause, MinPause), MaxPause)
	r.until, r.ask, r.tried = now.Add(r.pause), true, 0
	if r.Step(now) == "" {
		r.until = min(r.until, r.Due)
	}
	return r.until.Sub(now)
}

// Doubt makes the next request ask the node at once. It is for a new connection, and for a node that has answered that it
// has no nonce, or has granted a vote. If the node has forgotten again during the quarantine, the quarantine of the new
// nonce then begins at once, not only after a refused REJOIN.
func (r *Recovery) Doubt() { r.ask, r.pause, r.until = true, 0, 0 }

// Answered takes the answer to the last request. ok is false without an answer, or if it does not fit. received is a
// time at or after its receipt: an attempt begun between the sending and the execution of NOTICE may have a vote of the
// node's earlier life, and must have ended too.
func (r *Recovery) Answered(q Request, a Answer, ok bool, received clock.Instant) {
	m := ParseMarker(a.Text)
	switch {
	case q.Verb == ReadVerb:
		// For an earlier nonce, or before the quarantine's end, it counts nothing: the node may have voted since, for
		// an attempt still counting its votes.
		if ok && q.Nonce == r.Nonce && received >= r.Due && a.Code == OK && a.Token <= MaxToken && q.Node != r.Node {
			r.read.Add(&r.Fleet, q.Node, m)
			r.Floor = max(r.Floor, a.Token)
		}
		return
	case a.Code == Foreign, !ok && q.Verb != RejoinVerb:
	case ok && a.Code == Amnesia && m.Phase == Provisional && q.Verb != RejoinVerb:
		if m.Nonce != r.Nonce { // else the first receipt counts
			r.begin(m.Nonce, received.Add(r.Fleet.Quarantine))
		}
		return
	default: // it has its vote, or has refused REJOIN. One without an answer may yet be executed: never again
		r.begin("", 0)
	}
	r.rest(received)
}

// begin begins with another nonce of the node, or without one. Results of reads belong to the nonce before.
func (r *Recovery) begin(nonce string, due clock.Instant) {
	r.Nonce, r.Due, r.Floor, r.read = nonce, due, 0, Memory{}
}
