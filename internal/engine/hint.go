package engine

import (
	"encoding/binary"
	"time"

	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/quorum"
)

// Hinted handoff: a release that a node could not be given is kept as a hint, and
// handed off on the node's next connection before anything else is sent, so that the
// node cannot extend a lock that it is about to release. Hints of releases are enough:
// each acquire that may have set a key without a holder is followed by a release. The
// release of an absent key does no harm.
//
// A node that cannot have the key gets no hint (round.absent). While a quorum is away,
// such hints would fill the bound.

const (
	// hintBytes bounds the hints for a node: as many releases as may be under way
	// there, with keys of 30 bytes, and the first of them.
	hintBytes = 1 << 20
	// handoffOps is how many are handed off at a time, the next when they are
	// answered: each may have to be sent again by itself.
	handoffOps = 1024
	// handoffPause is the pause after a node has refused hints for now, with BUSY
	// for example.
	handoffPause = time.Second
)

// hints are those for one node. An entry is the lengths of the key and of the token
// with its tail, in two bytes each, the key, and the token with its tail.
type hints struct {
	entries []byte
	full    bool
	met     bool          // the node had a connection once; without it there are no keys
	out     bool          // some are on their way
	retry   time.Duration // not before
}

func (h *hints) add(key, token []byte) {
	need := 4 + len(key) + len(token)
	if len(h.entries)+need > hintBytes {
		h.compact()
	}
	if h.full = h.full || len(h.entries)+need > hintBytes; h.full {
		return
	}
	h.entries = binary.BigEndian.AppendUint16(h.entries, uint16(len(key)))
	h.entries = binary.BigEndian.AppendUint16(h.entries, uint16(len(token)))
	h.entries = append(h.entries, key...)
	h.entries = append(h.entries, token...)
}

// compact leaves one of each entry: while a quorum is away releases fail, and
// callers try them again and again. If that freed little, the hints
// count as full: otherwise each new entry would compact them again.
func (h *hints) compact() {
	seen := make(map[string]bool)
	kept := h.entries[:0]
	for left := h.entries; len(left) > 0; {
		_, rest := cutHint(left)
		entry := left[:len(left)-len(rest)]
		if !seen[string(entry)] {
			seen[string(entry)] = true
			kept = append(kept, entry...)
		}
		left = rest
	}
	h.entries = kept
	h.full = len(kept) > hintBytes/8*7
}

// cutHint returns the first entry and the rest.
func cutHint(entries []byte) (op command.Operand, rest []byte) {
	key := 4 + int(binary.BigEndian.Uint16(entries))
	end := key + int(binary.BigEndian.Uint16(entries[2:]))
	return command.Operand{Key: entries[4:key], Token: entries[key:end]}, entries[end:]
}

// noteTTL notes a TTL that is about to be sent.
func (e *Engine) noteTTL(ttl time.Duration) {
	if ttl > e.longest {
		e.longest = ttl
		e.fleet.NoteTTL(ttl + quorum.Drift(ttl))
	}
}

// hint keeps a command that failed on a node, if it is a release.
func (e *Engine) hint(node int, w *wire, s *span) {
	h := &e.hints[node]
	if s.kind != Release || !h.met || h.full || e.closing.Load() {
		return
	}
	rounds := w.batch.rounds[s.first : s.first+s.count]
	nowhere := quorum.Only(node)
	for i := range rounds {
		nowhere &= rounds[i].absent
	}
	if nowhere != 0 {
		return // as for most releases that a node misses while it is away
	}
	for i, op := range e.reader.Read(s.kind, w.Buf[s.from:s.to]) {
		if !rounds[i].absent.Has(node) {
			h.add(op.Key, op.Token)
		}
	}
}

// handOff sends the first of a node's hints.
func (e *Engine) handOff(node int) {
	h := &e.hints[node]
	if len(h.entries) == 0 || h.out {
		return
	}
	var operands []command.Operand
	left := h.entries
	for len(left) > 0 && len(operands) < handoffOps {
		var op command.Operand
		op, left = cutHint(left)
		operands = append(operands, op)
	}
	b := &batch{engine: e, isHint: true, hintOf: node, passed: true}
	b.rounds = make([]round, len(operands)) // without operations, and with tallies of no nodes
	b.groups = []group{{Release, 0, len(operands)}}
	w := newWire(b)
	w.errand, w.Form = true, e.fleet.Node(node).Form
	w.append(Release, 0, operands, command.MaxKeys)
	h.entries = append([]byte(nil), left...) // before they fail, if they fail at once
	h.full, h.out = false, true
	e.watchdog.see(maxTimeout)
	e.unanswered++
	w.sendTo(node)
}

// handedOff goes on with the next hints when those of b were answered.
func (e *Engine) handedOff(b *batch) {
	h := &e.hints[b.hintOf]
	h.out = false
	switch {
	case b.later:
		h.retry = e.clock.Now() + handoffPause
	case e.fleet.Fault(b.hintOf) == nil && !e.closing.Load():
		e.handOff(b.hintOf)
	}
}

// retryHints hands off what nodes have refused for a while, and reports whether there
// is more to come.
func (e *Engine) retryHints(now time.Duration) (more bool) {
	for node := range e.nodes {
		h := &e.hints[node]
		if len(h.entries) == 0 || h.out || e.fleet.Fault(node) != nil {
			continue
		}
		if more = true; now >= h.retry {
			e.handOff(node)
		}
	}
	return more
}
