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

// Request is one call of the member script. The zero Request is none.
type Request struct {
	Node  int
	Verb  Verb
	Nonce string
	Floor Token  // of RejoinVerb
	Fleet string // of RejoinVerb: what the marker is to name
}

// Treatment carries out a Rejoin: it decides which node is asked what, and takes the answers, or
// their absence. It is a plain value. One request is under way at a time.
//
// While it waits for the end of a quarantine, or for votes of others, it asks the node from time to
// time about its vote: another client may have been faster.
type Treatment struct {
	Rejoin
	tried quorum.Set // nodes read since the last pause
	pause time.Duration
	until clock.Instant // the pause ends
	ask   bool          // the node, after the pause
}

// Finished reports whether the node has its vote.
func (t *Treatment) Finished() bool { return t.step == Finished }

// Doubt has the node asked at once: there is a new connection, or the node has answered that it has
// no nonce, or has granted a vote. If it has forgotten again during the quarantine, the quarantine
// of the new nonce begins at once, and not after a refused REJOIN.
func (t *Treatment) Doubt() { t.ask, t.pause, t.until = true, 0, 0 }

// Next returns the next request, or the pause before the next call of Next. nonce is new to NOTICE,
// and voting are the nodes known to have a vote.
func (t *Treatment) Next(now clock.Instant, nonce string, voting quorum.Set) (r Request, pause time.Duration) {
	step := t.Rejoin.Next(now)
	switch {
	case step == Finished:
		return r, 0
	case now < t.until:
		return r, t.until.Sub(now)
	case t.ask || step == SendNotice:
		t.ask = false
		return Request{Node: t.node, Verb: NoticeVerb, Nonce: nonce}, 0
	case step == WaitUntil:
		return r, t.rest(now)
	case step == SendReads:
		left := t.Unread() & voting &^ t.tried
		if left == 0 { // too few others have a vote
			return r, t.rest(now)
		}
		if next := left & t.fleet.Next.Nodes; next != 0 {
			left = next // once a change is done, nodes of the first alone name both for ever
		}
		node := left.Least()
		t.tried.Add(node)
		return Request{Node: node, Verb: ReadVerb, Nonce: t.Nonce}, 0
	}
	return Request{Node: t.node, Verb: RejoinVerb, Nonce: t.Nonce, Floor: t.Floor, Fleet: t.Fleet()}, 0
}

// rest begins a pause, after which the node is asked.
func (t *Treatment) rest(now clock.Instant) time.Duration {
	t.pause = min(max(2*t.pause, MinPause), MaxPause)
	t.until, t.ask, t.tried = now.Add(t.pause), true, 0
	if t.step == WaitUntil {
		t.until = min(t.until, t.Due)
	}
	return t.until.Sub(now)
}

// Answered takes the answer to the last request, received before now. ok is false if none came, or
// one that does not fit.
func (t *Treatment) Answered(r Request, a Answer, ok bool, now clock.Instant) {
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
	}
	if !ok || a.Code == Foreign || t.step == SendNotice {
		t.rest(now)
	}
}
