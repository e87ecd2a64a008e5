package engine

import (
	"encoding/binary"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/fleet"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// Hinted handoff: a release that a node could not be given is kept as a hint. Hints are handed off on the node's next
// connection before anything else is sent, or the node could extend a lock it is about to release. Hints of releases
// are enough: each acquire that may have set a key without a holder is followed by a release. The release of an
// absent key does no harm.
//
// A node that cannot have the key gets no hint (round.absent). While a quorum is away,
// such hints would fill the bound.

const (
	// hintBytes bounds the hints for a node: as many releases as may be under way
	// there, with keys of 30 bytes, and the first of them.
	hintBytes = 1 << 20
	// handoffOps is how many are handed off at a time. The next follow when they are answered: each may have to be
	// sent again by itself.
	handoffOps = 1024
	// handoffPause is the pause after a node has refused hints for now, with BUSY
	// for example.
	handoffPause = time.Second
)

// hints is the hints for all nodes. The driver lock protects them.
type hints struct {
	nodes *nodes
	of    [quorum.MaxNodes]nodeHints
}

// nodeHints are those for one node. An entry is the lengths of the key and of the token
// with its tail, in two bytes each, the key, and the token with its tail.
type nodeHints struct {
	entries []byte
	full    bool
	met     bool          // the node had a connection once; without it there are no keys
	out     bool          // some are on their way
	loads   bool          // the next are sent after the script
	apart   bool          // the next are sent a command each: a call of several was refused
	retry   clock.Instant // not before
}

func (h *nodeHints) add(key, token []byte) {
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

// compact leaves one of each entry: while a quorum is away releases fail, and callers try them again and again. If
// this frees little, the hints count as full: otherwise each new entry would compact them again.
func (h *nodeHints) compact() {
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

// wanted reports whether a release that failed on a node is to be kept.
func (l *hints) wanted(node int) bool {
	h := &l.of[node]
	return h.met && !h.full && !l.nodes.closing.Load()
}

// up hands off the hints of a node with a new connection.
func (l *hints) up(node int) {
	h := &l.of[node]
	h.met, h.out = true, false
	l.handOff(node)
}

// handoff is hints on their way to a node. Hints refused for another reason than their keys are sent again, with the
// next.
type handoff struct {
	fleet.Batch
	hints  *hints
	node   int
	left   []byte // entries without an answer
	counts []int  // by reply to come: of how many entries
	loads  bool   // the first reply is to SCRIPT LOAD
	later  bool   // some were refused for now
}

// handOff sends the first of a node's hints.
func (l *hints) handOff(node int) {
	h := &l.of[node]
	if len(h.entries) == 0 || h.out {
		return
	}
	o := &handoff{hints: l, node: node}
	o.Owner, o.Form = o, l.nodes.Node(node).Form
	form, merge := command.Form(o.Form), command.MaxKeys
	if h.apart {
		merge = 1
	}
	if o.loads = h.loads; o.loads {
		o.Buf, o.counts = command.AppendLoad(nil, Release, form), []int{0}
	}
	var operands []command.Operand
	left := h.entries
	for len(left) > 0 && len(operands) < handoffOps {
		var op command.Operand
		op, left = cutHint(left)
		operands = append(operands, op)
	}
	for len(operands) > 0 {
		n := command.Merge(Release, form, operands, merge)
		o.Buf, o.counts = command.Append(o.Buf, Release, form, operands[:n], nil), append(o.counts, n)
		operands = operands[n:]
	}
	o.Replies, o.left = len(o.counts), h.entries[:len(h.entries)-len(left)]
	h.entries = append([]byte(nil), left...) // before they fail, if they fail at once
	h.full, h.out, h.loads, h.apart = false, true, false, false
	l.nodes.sendTo(node, &o.Batch, maxTimeout)
}

// Reply implements fleet.Owner.
func (o *handoff) Reply(_, i int, v *resp.Value) error {
	n, form, h := o.counts[i], command.Form(o.Form), &o.hints.of[o.node]
	switch {
	case n == 0 && command.IsLoaded(v):
		return nil
	case n > 0 && !v.IsError() && command.FitsRelease(n, form, v):
		o.cut(n, false)
		return nil
	case n == 0 || !v.IsError():
		return misfit(v)
	}
	r := command.Refused(Release, form, n, v, o.loads)
	o.later = o.later || r.Later
	switch r.Remedy {
	case command.Load:
		h.loads = true
	case command.Split:
		h.apart = true
	case command.Rephrase:
		o.hints.nodes.rephrase(o.node, form)
	}
	o.cut(n, r.Later || r.Fatal || r.Remedy != command.None)
	if r.Fatal {
		return r.Err
	}
	return nil
}

// cut ends the first n entries. It may keep them for the next handoff.
func (o *handoff) cut(n int, keep bool) {
	for ; n > 0 && len(o.left) > 0; n-- {
		var op command.Operand
		if op, o.left = cutHint(o.left); keep && o.hints.wanted(o.node) {
			o.hints.of[o.node].add(op.Key, op.Token)
		}
	}
}

// Fail implements fleet.Owner.
func (o *handoff) Fail(int, int, error) {
	o.cut(handoffOps, true)
}

// Done implements fleet.Owner. It goes on with the next hints.
func (o *handoff) Done() {
	l, h := o.hints, &o.hints.of[o.node]
	l.nodes.answered()
	h.out = false
	switch {
	case o.later:
		h.retry = l.nodes.clock.Now().Add(handoffPause)
	case l.nodes.Fault(o.node) == nil && !l.nodes.closing.Load():
		l.handOff(o.node)
	}
}

// again hands off hints refused for a while, and reports whether more is to come.
func (l *hints) again(now clock.Instant) (more bool) {
	for node := range l.nodes.n {
		h := &l.of[node]
		if len(h.entries) == 0 || h.out || l.nodes.Fault(node) != nil {
			continue
		}
		if more = true; now >= h.retry {
			l.handOff(node)
		}
	}
	return more
}
