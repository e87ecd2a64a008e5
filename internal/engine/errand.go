package engine

import (
	"encoding/binary"
	"hash/maphash"
	"math"

	"github.com/redlock-go/redlock/internal/command"
)

// An errand is commands for one node alone: the repeat of a command that the node has
// refused, or hints. Its replies vote in the rounds of a batch, as those of the
// batch's own wires do.
//
// An errand reaches the node after later batches. That is harmless for a release: it
// acts on its own attempt's token alone. An extend must not undo a later one of the
// same lock, which has the same token and may ask for more. If there is a later one,
// the extend is not repeated and its vote fails. Nor is an acquire when its attempt is over,
// which is one of package fencing: its release may have been sent, and would come first.

// again sends the rounds of a refused command once more, by script calls of at most
// merge keys, with the script in front where the node may not know it.
func (w *wire) again(node int, s *span, merge int, load bool) {
	b := w.batch
	operands := b.engine.reader.Read(s.kind, w.Buf[s.from:s.to])
	var errand *wire
	for i := 0; i < len(operands); {
		first := i
		for i < len(operands) && !b.isOvertaken(s, s.first+i) {
			i++
		}
		if i > first {
			if errand == nil {
				errand = b.newErrand(node, s.kind, load)
			}
			errand.append(s.kind, s.first+first, operands[first:i], merge)
		}
		for ; i < len(operands) && b.isOvertaken(s, s.first+i); i++ {
			if s.kind == Acquire {
				b.rounds[s.first+i].absent |= 1 << uint(node)
			}
			b.refused(node, s.first+i, errOvertaken)
		}
	}
	if errand != nil {
		errand.sendTo(node)
	}
}

// newErrand is an errand in rounds of b, by script calls.
func (b *batch) newErrand(node int, kind Kind, load bool) *wire {
	w := newWire(b)
	if f := b.engine.fleet.Node(node).Form; command.Form(f).IsFenced(kind) {
		w.Form = f
	}
	w.errand, w.loads = true, load
	if load {
		w.Buf = command.AppendLoad(w.Buf, kind, w.form())
	}
	return w
}

func (w *wire) sendTo(node int) {
	if w.Replies = len(w.spans); w.loads {
		w.Replies++
	}
	w.batch.owed++
	if !w.batch.isHint {
		w.batch.open[node]++
	}
	w.batch.engine.fleet.SendTo(node, &w.Batch)
}

// lockOf distinguishes the keys of locks by a hash, mixed with the beginning of the token:
// a lock of several keys has one token. For two that share it, a repeat may be left out,
// with no other effect.
func (e *Engine) lockOf(op *Op) uint64 {
	return (maphash.Bytes(e.planner.seed, op.Key) ^ binary.BigEndian.Uint64(op.Token[:])) | 1
}

// laterExtends has, for each lock, its last extend in a batch or in a later one. It is made
// when an extend is refused, and used for the batch's other refused extends until
// another batch with extends is sent.
type laterExtends struct {
	newest *batch // that it knows of
	rounds map[uint64]int
}

const inLaterBatch = math.MaxInt

// isOvertaken reports whether round i of s must not be asked again: the attempt of an acquire
// is over, or an extend of the same lock was sent later. A batch is recycled when the last
// node has answered, so those that s could overtake on its node all exist still.
func (b *batch) isOvertaken(s *span, i int) bool {
	switch s.kind {
	case Acquire:
		r := &b.rounds[i]
		return r.op == nil || r.op.state.Load() != r.life
	case Extend:
	default:
		return false
	}
	if newest := b.engine.extending.newest; b.behind.newest != newest {
		b.behind = laterExtends{newest, map[uint64]int{}}
		for other := b; other != nil; other = other.newer {
			other.noteExtends(b.behind.rounds, other != b)
		}
	}
	return b.behind.rounds[b.rounds[i].lock] >= s.first+s.count
}

func (b *batch) noteExtends(rounds map[uint64]int, later bool) {
	for _, g := range b.groups {
		if g.kind != Extend {
			continue
		}
		for i := g.first; i < g.first+g.count; i++ {
			at := i
			if later {
				at = inLaterBatch
			}
			rounds[b.rounds[i].lock] = at
		}
	}
}

// batches is a list of batches, the oldest first.
type batches struct{ oldest, newest *batch }

func (l *batches) add(b *batch) {
	if b.older = l.newest; b.older == nil {
		l.oldest = b
	} else {
		b.older.newer = b
	}
	l.newest = b
}

func (l *batches) remove(b *batch) {
	if b.older == nil {
		l.oldest = b.newer
	} else {
		b.older.newer = b.newer
	}
	if b.newer == nil {
		l.newest = b.older
	} else {
		b.newer.older = b.older
	}
	b.older, b.newer = nil, nil
}
