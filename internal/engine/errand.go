package engine

import (
	"encoding/binary"

	"github.com/redlock-go/redlock/internal/script"
	"github.com/redlock-go/redlock/resp"
)

// An errand is commands for one node alone: what it has refused in the form in which
// it was asked, or could not be given when the others were. It votes in the rounds
// of a batch as the batch's own wires do.
//
// An errand is sent behind everything that was sent since. A release may be: it
// acts on nothing but its own attempt's token. An extend may not overtake a later
// one of the same lock, which shares its token and may ask for more: its vote fails
// in place of that.

// again sends the rounds of a refused command once more, by script calls of at most
// merge keys, with the script in front where the node may not know it.
func (w *wire) again(node int, s *span, merge int, load bool) {
	b := w.batch
	operands := b.engine.reader.read(s.kind, w.Buf[s.from:s.to])
	later := b.laterExtends(s)
	var errand *wire
	for i := 0; i < len(operands); {
		first := i
		for i < len(operands) && !later.has(b.rounds[s.first+i].lock) {
			i++
		}
		if i > first {
			if errand == nil {
				errand = b.newErrand(s.kind, load)
			}
			errand.append(s.kind, s.first+first, operands[first:i], merge)
		}
		for ; i < len(operands) && later.has(b.rounds[s.first+i].lock); i++ {
			b.refused(node, s.first+i, errOvertaken)
		}
	}
	if errand != nil {
		errand.sendTo(node)
	}
}

// newErrand is an errand in rounds of b, in the dialect of scripts.
func (b *batch) newErrand(kind Kind, load bool) *wire {
	w := newWire(b)
	w.errand, w.loads = true, load
	if load {
		text := script.Release
		if kind == Extend {
			text = script.Extend
		}
		w.Buf = append(w.Buf, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n"...)
		w.Buf = resp.AppendBulkString(w.Buf, text)
	}
	return w
}

func (w *wire) sendTo(node int) {
	if w.Replies = len(w.spans); w.loads {
		w.Replies++
	}
	w.batch.owed++
	w.batch.engine.fleet.SendTo(node, &w.Batch)
}

// lockOf tells locks apart by the beginning of their tokens, 48 random bits. Two that
// share it are taken for one, by which a repeat is left out, no more.
func lockOf(token []byte) uint64 { return binary.BigEndian.Uint64(token) | 1 }

// locks is a set of what lockOf returns; nil is the empty one.
type locks map[uint64]struct{}

func (l locks) has(lock uint64) bool {
	_, found := l[lock]
	return found
}

// laterExtends is the locks that were asked to be extended behind s, if s is
// extends. A batch is recycled when the last node has answered, so those that s could
// overtake on its node are all there still.
func (b *batch) laterExtends(s *span) (later locks) {
	if s.kind != Extend {
		return nil
	}
	for other := b; other != nil; other = other.newer {
		for _, g := range other.groups {
			if g.kind != Extend {
				continue
			}
			for i := g.first; i < g.first+g.count; i++ {
				if other == b && i < s.first+s.count {
					continue
				}
				if later == nil {
					later = locks{}
				}
				later[other.rounds[i].lock] = struct{}{}
			}
		}
	}
	return later
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

// operandReader reads what was asked back out of a command that was written by this
// package, for its operations may be gone. It is used again and again, since while
// a node is down that is done for each batch.
type operandReader struct {
	args     [][]byte
	operands []operand
}

// read returns operands that point into the command, valid until the next read.
func (r *operandReader) read(kind Kind, command []byte) []operand {
	d := resp.Decoder{Limits: resp.Limits{Bulk: MaxKey, Elements: 1 << 10, Depth: 1}}
	var v resp.Value
	if _, err := d.Decode(command, &v); err != nil {
		panic("redlock: a command of its own making is malformed: " + err.Error())
	}
	clear(r.args) // they point into what may be large
	clear(r.operands)
	r.args, r.operands = r.args[:0], r.operands[:0]
	for it := v.Elements(); it.Next(); {
		r.args = append(r.args, it.Value().Bytes)
	}
	args := r.args
	switch string(args[0]) {
	case "EVALSHA": // sha n key… token… ttl…
		n := int(number(args[2]))
		for i := range n {
			op := operand{key: args[3+i], token: args[3+n+i]}
			if kind == Extend {
				op.ttl = number(args[3+2*n+i])
			}
			r.operands = append(r.operands, op)
		}
	case "DELEX": // key IFEQ token
		r.operands = append(r.operands, operand{key: args[1], token: args[3]})
	case "DELIFEQ": // key token
		r.operands = append(r.operands, operand{key: args[1], token: args[2]})
	default: // SET key token … ttl
		r.operands = append(r.operands, operand{args[1], args[2], number(args[len(args)-1])})
	}
	return r.operands
}

// number reads what was written as digits.
func number(digits []byte) (n int64) {
	for _, c := range digits {
		n = 10*n + int64(c-'0')
	}
	return n
}
