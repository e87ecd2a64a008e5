package engine

import (
	"hash/maphash"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
)

// A segment's commands are written by command.Kind.Rank.
const (
	releases = 0
	acquires = command.Classes - 1
	classes  = command.Classes
)

// encoder arranges a list of operations in a batch: in which order they are
// written, and which may be merged. Releases, and extends, that wait together
// become one script call each, or stand together where a node has commands of its
// own for them.
//
// Merging moves commands past each other, which must not show. So a list is cut
// into segments: within one, each key occurs once, or only such that writing
// releases, then extends, then acquires keeps the order of its commands. The
// keys are told apart by hash; two keys that share one cost a cut, no more.
type encoder struct {
	seed     maphash.Seed
	seen     keySet
	lists    [classes]list
	operands []command.Operand // of the batch that is being encoded
	align    aligner
}

func (enc *encoder) init() {
	enc.seed = maphash.MakeSeed()
	enc.align.init()
}

// list is a chain of operations through next.
type list struct {
	first, last *Op
	n           int
}

func (l *list) push(op *Op) {
	op.next = nil
	if l.first == nil {
		l.first = op
	} else {
		l.last.next = op
	}
	l.last = op
	l.n++
}

// encode puts the n operations from first on into b, and writes it in the given
// forms. With align it may hold some of them back, which it returns; of a list
// in which a key occurs twice none are, for the others would overtake them.
func (enc *encoder) encode(b *batch, first *Op, n int, forms []conn.Form, align bool) (held list) {
	enc.seen.reset(n)
	for op := first; op != nil; {
		next := op.next
		class := uint8(op.Kind.Rank())
		if n > 1 {
			hash := maphash.Bytes(enc.seed, op.Key)
			was, again := enc.seen.add(hash, class)
			align = align && !again
			if again && (was > class || was == class && class != acquires) {
				enc.cut(b)
				enc.seen.reset(n)
				enc.seen.add(hash, class)
			}
		}
		enc.lists[class].push(op)
		op = next
	}
	if align {
		held = enc.align.hold(&enc.lists)
	}
	enc.cut(b)
	b.translate(enc.operands, forms)
	clear(enc.operands) // they point into operations
	enc.operands = enc.operands[:0]
	return held
}

// cut ends a segment: what is listed gets its rounds.
func (enc *encoder) cut(b *batch) {
	for class := range enc.lists {
		l := &enc.lists[class]
		if l.n > 0 {
			b.groups = append(b.groups, group{command.OfRank(class), len(b.rounds), l.n})
		}
		for op := l.first; op != nil; {
			next := op.next
			b.add(op)
			enc.operands = append(enc.operands, op.operand())
			op = next
		}
	}
	enc.lists = [classes]list{}
}

// keySet remembers which hashes a segment has seen, and the highest class of
// each. Resetting it costs nothing: an entry counts only in its own epoch.
type keySet struct {
	entries []keyEntry // power of two, at most half full
	epoch   uint32
}

type keyEntry struct {
	hash  uint64
	epoch uint32
	class uint8
}

// reset forgets everything and makes room for n keys.
func (s *keySet) reset(n int) {
	size := 64
	for size < 2*n {
		size *= 2
	}
	s.epoch++
	if len(s.entries) < size || s.epoch == 0 {
		s.entries = make([]keyEntry, max(size, len(s.entries)))
		s.epoch = 1
	}
}

// add notes the class for a hash and returns what was noted before.
func (s *keySet) add(hash uint64, class uint8) (was uint8, again bool) {
	mask := uint64(len(s.entries) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		e := &s.entries[i]
		if e.epoch != s.epoch {
			*e = keyEntry{hash, s.epoch, class}
			return 0, false
		}
		if e.hash == hash {
			was = e.class
			e.class = max(was, class)
			return was, true
		}
	}
}
