package engine

import (
	"hash/maphash"

	"github.com/redlock-go/redlock/internal/client/fleet"
	"github.com/redlock-go/redlock/internal/wire/command"
)

// A segment's commands are written by command.Kind.Rank.
const (
	releases = 0
	acquires = 2
	classes  = command.Classes
)

// planner arranges a list of operations in a batch: it orders and merges them. Releases that wait together become one
// script call, and so do extends; or they stand together where a node has native commands for them.
//
// Merging moves commands past each other, and this must not show. So a list is cut into segments. Within one, each
// key occurs once, or the order of its commands is releases, then extends, then acquires: the order in which a
// segment is written. Keys are distinguished by hash; two keys with one hash cost a cut and have no other effect.
type planner struct {
	seed     maphash.Seed
	seen     keySet
	lists    [classes]list
	operands []command.Operand // of the batch being planned
	deferrer deferrer
}

func (p *planner) init() {
	p.seed = maphash.MakeSeed()
	p.deferrer.init()
}

// plan puts the n operations from first on into b, and writes it in the given forms. With mayDefer it may defer some
// of them, and returns these. It defers nothing of a list with a key twice, since others would overtake it, or with
// releases without a waiting caller.
func (p *planner) plan(b *batch, first *Op, n int, forms []fleet.Form, mayDefer bool) (later list) {
	p.seen.reset(n)
	for op := first; op != nil; {
		next := op.next
		class := uint8(op.Kind.Rank())
		if mayDefer && class == releases {
			mayDefer = op.Ends.isAwaited() // else no caller comes back with an acquire when it is answered
		}
		if n > 1 {
			hash := maphash.Bytes(p.seed, op.Key)
			was, again := p.seen.add(hash, class)
			mayDefer = mayDefer && !again
			if again && (was > class || was == class && class < acquires) {
				p.cut(b)
				p.seen.reset(n)
				p.seen.add(hash, class)
			}
		}
		p.lists[class].push(op)
		op = next
	}
	if mayDefer {
		later = p.deferrer.minority(&p.lists)
	}
	p.cut(b)
	b.write(p.operands, forms)
	clear(p.operands) // they point into operations
	p.operands = p.operands[:0]
	return later
}

// cut ends a segment: the operations in its list get their rounds.
func (p *planner) cut(b *batch) {
	for class := range p.lists {
		l := &p.lists[class]
		if l.n > 0 {
			b.runs = append(b.runs, run{command.OfRank(class), len(b.rounds), l.n})
		}
		for op := l.first; op != nil; {
			next := op.next
			b.add(op)
			p.operands = append(p.operands, op.operand())
			op = next
		}
	}
	p.lists = [classes]list{}
}

// deferrer defers the minority kind. A call of a script costs a server tens of microseconds before it looks at the
// first key. Callers that submit again as soon as they are served may fall into two camps: one acquires while the
// other releases. Then each batch has both kinds, and the servers run one call for half of the releases, and another
// in the next batch. So where a batch would have both kinds, the smaller kind is deferred to the next batch. By then
// the other callers want this kind too, and both travel together.
//
// It helps only callers that come back at once. Where the next batch has both kinds again it did not help, and is not
// tried for a while, twice as long each time: of callers with longer holds one batch in maxDeferPause is split.
//
// No operation is deferred twice: the deferred ones are in the next batch.
type deferrer struct {
	deferred int // the class deferred from the last batch, or classes
	pause    int // batches until it is tried again
	next     int // the pause after the next failure
}

const maxDeferPause = 256

func (d *deferrer) init() { d.deferred, d.next = classes, 1 }

// minority takes the operations to defer, if any, out of a list for one batch.
func (d *deferrer) minority(lists *[classes]list) (later list) {
	before, may := d.deferred, d.pause == 0
	d.deferred = classes
	mixed := lists[releases].n > 0 && lists[acquires].n > 0
	switch {
	case before != classes && mixed:
		d.pause, d.next = d.next, min(2*d.next, maxDeferPause)
	case before != classes:
		d.next = 1
	case d.pause > 0:
		d.pause--
	}
	fewer := acquires
	if lists[releases].n < lists[acquires].n {
		fewer = releases
	}
	if !may || !mixed || fewer == before {
		return list{}
	}
	d.deferred = fewer
	later, lists[fewer] = lists[fewer], list{}
	return later
}

// keySet remembers the hashes of a segment, and the highest class of each. Resetting it costs nothing: an entry
// counts only in its own epoch.
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
