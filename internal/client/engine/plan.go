package engine

import (
	"bytes"
	"cmp"
	"hash/maphash"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/wire/command"
)

// A segment's commands are written by command.Rank.
const (
	releases = 0
	acquires = 2
	classes  = len(command.ByRank)
)

// planner arranges a list of operations in a batch: it orders and merges them. Releases that wait together become one
// script call, and so do extends; or they stand together where a node has native commands for them.
//
// Merging moves commands past each other, and this must not show. So a list is cut into segments. Within one, each
// key occurs once, or the order of its commands is releases, then extends, then acquires: the order in which a
// segment is written. Of shared locks many acquires and releases of a key stand in one segment, side by side: they
// share a command. Keys are distinguished by hash; two keys with one hash cost a cut and have no other effect.
type planner struct {
	seed     maphash.Seed
	seen     keySet[seen]
	lists    [classes]list
	shared   [classes]list     // of shared locks, those on a key side by side
	last     keySet[*Op]       // of these, by key and class
	shares   bool              // last is in use
	operands []command.Operand // of the batch being planned
	deferrer deferrer
}

func (p *planner) init() {
	p.seed = maphash.MakeSeed()
	p.deferrer = deferrer{deferred: classes, next: 1}
}

// plan puts operations into b, and writes it in the given forms. With mayDefer it may defer some
// of them, and returns these. It defers nothing of a list with a key twice, since others would overtake it, or with
// releases without a waiting caller.
func (p *planner) plan(b *batch, ops list, forms []conn.Form, mayDefer bool) (later list) {
	n := ops.n
	p.seen.reset(n)
	for op := ops.first; op != nil; {
		next := op.next
		class := command.Rank[op.Kind]
		if mayDefer && class == releases {
			mayDefer = op.Ends.isAwaited() // else no caller comes back with an acquire when it is answered
		}
		of, after := &p.lists[class], (*Op)(nil)
		if op.Shared {
			of = &p.shared[class]
		}
		if n > 1 {
			hash := maphash.Bytes(p.seed, op.Key)
			k, again := p.seen.at(hash)
			mayDefer = mayDefer && (!again || op.Shared && k.shared)
			if again && (op.Shared != k.shared || op.Shared && k.extended && class == releases || !op.Shared && (k.class > class || k.class == class && class < acquires)) {
				p.cut(b)
				p.seen.reset(n)
				k, _ = p.seen.at(hash)
			}
			k.class, k.shared, k.extended = max(k.class, class), op.Shared, k.extended || op.Kind == Extend
			if op.Shared {
				after = p.besides(b, op, hash+uint64(class)<<62, n)
			}
		}
		of.insert(cmp.Or(after, of.last), op)
		op = next
	}
	p.join()
	if mayDefer {
		later = p.deferrer.minority(&p.lists)
	}
	p.cut(b)
	b.write(p.operands, forms)
	clear(p.operands) // they point into operations
	p.operands = p.operands[:0]
	return later
}

// besides is the last operation of the segment on the shared lock of op, of its class, or nil.
func (p *planner) besides(b *batch, op *Op, hash uint64, n int) (after *Op) {
	if !p.shares {
		p.shares = true
		p.last.reset(n)
	}
	last, again := p.last.at(hash)
	after = *last
	if again && !bytes.Equal(after.Key, op.Key) {
		p.cut(b) // two keys with one hash
		return p.besides(b, op, hash, n)
	}
	*last = op
	return after
}

// join puts the operations on shared locks behind the others of their class.
func (p *planner) join() {
	p.shares = false
	if p.shared == [classes]list{} {
		return
	}
	for class, l := range p.shared {
		if l.n > 0 {
			p.lists[class].append(l)
		}
	}
	p.shared = [classes]list{}
}

// cut ends a segment: the operations in its list get their rounds.
func (p *planner) cut(b *batch) {
	p.join()
	for class := range p.lists {
		l := &p.lists[class]
		if l.n > 0 {
			b.runs = append(b.runs, run{command.ByRank[class], len(b.rounds), l.n})
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

// keySet remembers something of the hashes of a segment. Resetting it costs nothing: an entry counts only in its own
// epoch.
type keySet[V any] struct {
	entries []keyEntry[V] // power of two, at most half full
	epoch   uint32
}

type keyEntry[V any] struct {
	hash  uint64
	epoch uint32
	is    V
}

// seen is what the operations of a segment on a key are.
type seen struct {
	class    uint8 // the highest
	shared   bool  // they are on a shared lock
	extended bool  // one of them is an extend
}

// reset forgets everything and makes room for n keys.
func (s *keySet[V]) reset(n int) {
	size := 64
	for size < 2*n {
		size *= 2
	}
	s.epoch++
	if len(s.entries) < size || s.epoch == 0 {
		s.entries = make([]keyEntry[V], max(size, len(s.entries)))
		s.epoch = 1
	}
}

// at is what is noted for a hash, the zero value at first.
func (s *keySet[V]) at(hash uint64) (is *V, again bool) {
	mask := uint64(len(s.entries) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		e := &s.entries[i]
		if e.epoch != s.epoch {
			*e = keyEntry[V]{hash: hash, epoch: s.epoch}
			return &e.is, false
		}
		if e.hash == hash {
			return &e.is, true
		}
	}
}
