package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// Hinted handoff: a release is owed to a node until it has answered: the key is deleted, or does not hold the token.
// Without that answer the release is kept as a hint.
//
//   - A release is missed if the connection ends. It is handed off on the node's next connection before anything else
//     is sent: otherwise the node could extend a lock it is about to release.
//   - A refused release is handed off again after a pause. The pause doubles with each refusal. It does not matter
//     which error the node gave: a list of passing errors would never be complete. If the answer ends the connection,
//     the pause also keeps the release from ending each next one.
//
// Hints of releases are enough: each acquire that may have set a key without a holder is followed by a release. The
// release of an absent key does no harm.
//
// A node that cannot have the key gets no hint (round.absent). While a quorum is away, such hints would fill the bound.
//
// A key that was to stay for a while (Op.Stay) stays for the rest of it when the hint is handed off.
//
// A handoff is a batch for one node, with rounds that have no operation: what the node refuses is sent again, in
// smaller calls or with its script, or kept, as of any batch.

const (
	// hintBytes bounds the memory of the hints for a node: some 16,000 releases, with keys of 30 bytes. Each costs
	// hintCost beside its key and its token.
	hintBytes = 2 << 20
	hintCost  = 80
	// handoffOps is how many are handed off at a time. The next follow when they are answered: each may have to be
	// sent again by itself.
	handoffOps = 1024
	// hintPause is the pause after the first refusal of a release, and mostHintPause the longest.
	hintPause     = 250 * time.Millisecond
	mostHintPause = 30 * time.Second
)

// hint is a release owed to a node. The token has its tail behind it.
type hint struct {
	key, token string
	shared     bool
}

func (x hint) size() int { return hintCost + len(x.key) + len(x.token) }

// owed is a hint that waits: refused so often, and not to be handed off before due.
type owed struct {
	hint
	refused uint8
	due     clock.Instant // 0: at once
	stays   clock.Instant // until then the key stays; 0: it does not
}

// left is how long the key is still to stay, in milliseconds.
func (x *owed) left(now clock.Instant) int64 {
	return max(0, int64((x.stays.Sub(now)+time.Millisecond-1)/time.Millisecond))
}

// pauseAfter is the pause after so many refusals of a release in succession.
func pauseAfter(refused uint8) time.Duration {
	return min(hintPause<<min(refused-1, 16), mostHintPause)
}

// hints are those for one node, each once: while a quorum is away callers repeat their releases. The driver lock
// protects them.
type hints struct {
	all   []owed // oldest first
	known map[hint]bool
	bytes int           // their sizes
	met   bool          // the node had a connection once; without it there are no keys
	out   bool          // some are on their way
	next  clock.Instant // when the first of all is due
}

func (h *hints) add(x owed) {
	if h.known[x.hint] {
		return
	}
	if len(h.all) == 0 {
		h.all, h.known, h.next = nil, make(map[hint]bool), clock.Never
	}
	h.all = append(h.all, x)
	h.known[x.hint] = true
	h.bytes += x.size()
	h.next = min(h.next, x.due)
}

// take takes out the oldest that are due.
func (h *hints) take(now clock.Instant) (some []owed) {
	left := h.all[:0]
	h.next = clock.Never
	for _, x := range h.all {
		if x.due <= now && len(some) < handoffOps {
			some = append(some, x)
			h.bytes -= x.size()
			delete(h.known, x.hint)
			continue
		}
		left = append(left, x)
		h.next = min(h.next, x.due)
	}
	clear(h.all[len(left):])
	h.all = left
	return some
}

// wantsHint reports whether a release without an answer of a node is to be kept.
func (bs *batches) wantsHint(node int) bool {
	h := &bs.hints[node]
	return h.met && h.bytes < hintBytes && !bs.nodes.closing.Load()
}

// up hands off the hints of a node with a new connection.
func (bs *batches) up(node int) {
	h := &bs.hints[node]
	h.met, h.out = true, false
	if len(h.all) > 0 {
		bs.nodes.pulse.see(MaxTimeout) // those that are not due yet
	}
	bs.handOff(node)
}

// handOff sends the first of a node's hints that are due.
func (bs *batches) handOff(node int) {
	h, now := &bs.hints[node], bs.nodes.clock.Now()
	if len(h.all) == 0 || h.out || now < h.next {
		return
	}
	h.out = true
	b, some := bs.batch(), h.take(now)
	b.to, b.left = quorum.Only(node), true // it is in no window
	operands := make([]command.Operand, len(some))
	for i, x := range some {
		operands[i] = command.Operand{Key: []byte(x.key), Token: []byte(x.token), TTL: x.left(now), Shared: x.shared}
		r := round{kind: Release, refused: x.refused}
		r.tally.Reset(bs.nodes.quorum)
		r.tally.Record(node, quorum.Failed) // this vote has been counted
		b.rounds = append(b.rounds, r)
	}
	b.runs = append(b.runs, run{Release, 0, len(operands)})
	b.first.write(b.runs, operands, bs.nodes.Node(node).Form)
	b.owed = 1
	bs.nodes.sendTo(node, &b.first.Batch, MaxTimeout)
}

// handedOff notes that a handoff has ended. The next follows when the operations decided in this sweep are complete:
// until then no batch is used again.
func (bs *batches) handedOff(node int) {
	bs.hints[node].out = false
	bs.ended.Add(node)
}

// goOn hands off the next hints where a handoff has ended.
func (bs *batches) goOn() {
	if bs.ended == 0 {
		return
	}
	ended := bs.ended
	bs.ended = 0
	for node := range ended.All() {
		if bs.nodes.Fault(node) == nil && !bs.nodes.closing.Load() {
			bs.handOff(node)
		}
	}
}

// again hands off the hints that have become due, and returns when the next are.
func (bs *batches) again(now clock.Instant) (next clock.Instant) {
	next = clock.Never
	for node := range bs.nodes.n {
		h := &bs.hints[node]
		if len(h.all) == 0 || h.out || bs.nodes.Fault(node) != nil {
			continue
		}
		if now >= h.next {
			bs.handOff(node)
		} else {
			next = min(next, h.next)
		}
	}
	return next
}
