package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// Hinted handoff: a release that a node could not be given is kept as a hint. Hints are handed off on the node's next
// connection before anything else is sent, or the node could extend a lock it is about to release. Hints of releases
// are enough: each acquire that may have set a key without a holder is followed by a release. The release of an
// absent key does no harm.
//
// A node that cannot have the key gets no hint (round.absent). While a quorum is away,
// such hints would fill the bound.
//
// A handoff is a batch for one node, with rounds that have no operation: what the node refuses is sent again, in
// smaller calls or with its script, or kept, as of any batch.

const (
	// hintBytes bounds the memory of the hints for a node: as many releases as may be under way there, with keys of 30
	// bytes. Each costs hintCost beside its key and its token.
	hintBytes = 2 << 20
	hintCost  = 64
	// handoffOps is how many are handed off at a time. The next follow when they are answered: each may have to be
	// sent again by itself.
	handoffOps = 1024
	// handoffPause is the pause after a node has refused releases for now, with BUSY for example.
	handoffPause = time.Second
)

// hint is a release that a node could not be given. The token has its tail behind it.
type hint struct{ key, token string }

func (x hint) size() int { return hintCost + len(x.key) + len(x.token) }

// hints are those for one node, each once: while a quorum is away callers repeat their releases. The driver lock
// protects them.
type hints struct {
	all   []hint // oldest first
	known map[hint]bool
	bytes int           // their sizes
	met   bool          // the node had a connection once; without it there are no keys
	out   bool          // some are on their way
	retry clock.Instant // not before
}

func (h *hints) add(x hint) {
	if h.known[x] {
		return
	}
	if len(h.all) == 0 {
		h.all, h.known = nil, make(map[hint]bool)
	}
	h.all = append(h.all, x)
	h.known[x] = true
	h.bytes += x.size()
}

// take takes out the oldest.
func (h *hints) take() (releases []command.Operand) {
	n := min(handoffOps, len(h.all))
	for _, x := range h.all[:n] {
		releases = append(releases, command.Operand{Key: []byte(x.key), Token: []byte(x.token)})
		h.bytes -= x.size()
		delete(h.known, x)
	}
	h.all = h.all[n:]
	return releases
}

// wantsHint reports whether a release that failed on a node is to be kept.
func (l *batches) wantsHint(node int) bool {
	h := &l.hints[node]
	return h.met && h.bytes < hintBytes && !l.nodes.closing.Load()
}

// up hands off the hints of a node with a new connection.
func (l *batches) up(node int) {
	l.hints[node].met, l.hints[node].out = true, false
	l.handOff(node)
}

// handOff sends the first of a node's hints.
func (l *batches) handOff(node int) {
	h := &l.hints[node]
	if len(h.all) == 0 || h.out {
		return
	}
	h.out = true
	b, operands := l.batch(), h.take()
	b.to, b.passed, b.counted = quorum.Only(node), true, false // it is in no window
	for range operands {
		r := round{kind: Release}
		r.tally.Reset(l.nodes.quorum)
		r.tally.Record(node, quorum.Failed) // this vote has been counted
		b.rounds = append(b.rounds, r)
	}
	b.groups = append(b.groups, group{Release, 0, len(operands)})
	b.first.write(b.groups, operands, l.nodes.Node(node).Form)
	b.owed = 1
	l.nodes.sendTo(node, &b.first.Batch, maxTimeout)
}

// handedOff goes on with the next hints of a node.
func (l *batches) handedOff(node int) {
	h := &l.hints[node]
	if h.out = false; h.retry == 0 && l.nodes.Fault(node) == nil && !l.nodes.closing.Load() {
		l.handOff(node)
	}
}

// again hands off hints refused for a while, and reports whether more is to come.
func (l *batches) again(now clock.Instant) (more bool) {
	for node := range l.nodes.n {
		h := &l.hints[node]
		if len(h.all) == 0 || h.out || l.nodes.Fault(node) != nil {
			continue
		}
		if more = true; now >= h.retry {
			h.retry = 0
			l.handOff(node)
		}
	}
	return more
}
