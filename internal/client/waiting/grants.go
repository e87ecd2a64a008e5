package waiting

import (
	"sync/atomic"

	"github.com/redlock-go/redlock/internal/client/engine"
)

// grants keeps the number of the youngest grant of each key, also while the key has no desk. Keys with one hash share a
// cell. A new desk reads its cell: no grant of its key before has a greater number. If the number is of another key, the
// present lock is not passed on.
//
// A grant is noted in its cell, and then at its desk if there are desks. A desk is counted before it reads its cell.
// So one of the two sees the other.
type grants [1024]atomic.Uint64

// of is the cell of a key, by its hash. The lowest bits choose the shard.
func (g *grants) of(hash uint64) *atomic.Uint64 { return &g[hash/shards%uint64(len(g))] }

// note notes a number of key, and calls f for its desk, if it has one.
func (l *Lines) note(key string, serial uint64, f func(*desk)) {
	cell := l.grants.of(l.hash(key))
	for was := cell.Load(); was < serial && !cell.CompareAndSwap(was, serial); was = cell.Load() {
	}
	if l.known.Load() > 0 {
		l.at(key, f)
	}
}

// Granted notes by the number of the acquire that the nodes have granted key, and reports whether the grant stands. If
// not, its caller gives it back. See desk.stands.
func (l *Lines) Granted(key string, serial uint64, shared bool) (stands bool) {
	stands = true
	l.note(key, serial, func(d *desk) { stands = d.stands(serial, shared, l.cfg.Clock.Now()) })
	return stands
}

// Doubt notes that a lock on key may end without its handle: it is attached, or an Op is about to release it. No
// grant before is passed on any more. It returns a number for the attached handle.
func (l *Lines) Doubt(key string) (serial uint64) {
	serial = engine.Serial()
	l.note(key, serial, func(d *desk) { d.unknown = serial })
	return serial
}
