package fencing

import (
	"math/bits"
	"time"
)

// Verb is what the member script is asked for.
type Verb string

// The verbs that bring a node back.
const (
	NoticeVerb Verb = "notice"
	ReadVerb   Verb = "read"
	RejoinVerb Verb = "rejoin"
)

// RetryRejoin is the pause after a step that has failed, or has to wait for other nodes.
const RetryRejoin = 100 * time.Millisecond

// Request is one call of the member script. The zero Request is none.
type Request struct {
	Node  int
	Verb  Verb
	Nonce string
	Floor uint64 // of RejoinVerb
}

// Treatment carries a Rejoin out: it says which node is asked for what, and takes the
// answers, or that there was none. It is a plain value. One request is under way at a time.
type Treatment struct {
	Rejoin
	asked  uint64 // nodes that were read since the last pause, a bit each
	failed bool   // a pause is due
	doubt  bool   // the node may have another nonce
}

// Finished says whether the node has its vote.
func (t *Treatment) Finished() bool { return t.step == Finished }

// Doubt has the node asked for its nonce once more: there is a new connection, or the node
// has said that it has none. If it has forgotten again during the quarantine, that of the
// new nonce begins at once, and not when REJOIN is refused.
func (t *Treatment) Doubt() { t.doubt = true }

// Next returns the next request, or the pause before the next call of Next. nonce is one
// that no NOTICE has had before.
func (t *Treatment) Next(now time.Duration, nonce string) (r Request, pause time.Duration) {
	if t.failed {
		t.failed, t.asked = false, 0
		return r, RetryRejoin
	}
	step := t.Rejoin.Next(now)
	if t.doubt && step != Finished {
		step = SendNotice
	}
	switch step {
	case SendNotice:
		t.doubt = false
		return Request{Node: t.node, Verb: NoticeVerb, Nonce: nonce}, 0
	case WaitUntil:
		return r, t.due - now
	case SendReads:
		left := t.Unread() &^ t.asked
		if left == 0 { // too few others have a vote
			t.asked = 0
			return r, RetryRejoin
		}
		node := bits.TrailingZeros64(left)
		t.asked |= 1 << node
		return Request{Node: node, Verb: ReadVerb, Nonce: t.nonce}, 0
	case SendRejoin:
		return Request{Node: t.node, Verb: RejoinVerb, Nonce: t.nonce, Floor: t.floor}, 0
	}
	return r, 0
}

// Answered takes the answer to the last request, which was received before now. Not ok,
// there was none that fits.
func (t *Treatment) Answered(r Request, a Answer, ok bool, now time.Duration) {
	switch {
	case r.Verb == ReadVerb:
		if ok {
			t.Learned(r.Nonce, r.Node, a)
		}
		return
	case !ok && r.Verb == RejoinVerb: // it may have been applied, or may yet be: never again
		t.Drop()
	case !ok, a.Code == Foreign:
	case r.Verb == NoticeVerb:
		t.Noticed(a, now)
	default:
		t.Rejoined(a, now)
		return
	}
	t.failed = !ok || a.Code == Foreign || t.step == SendNotice
}
