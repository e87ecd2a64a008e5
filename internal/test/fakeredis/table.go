package fakeredis

import (
	"bytes"
	"hash/maphash"

	"github.com/redlock-go/redlock/internal/test/fencenode"
)

// stringKind is the kind of every key made by SET; any other kind is the name of a foreign type,
// such as "list".
const stringKind = "string"

// maxKeptBuffer bounds the buffer kept by a free entry for its successor.
const maxKeptBuffer = 4096

// table holds the keys. An entry keeps its key and value in one buffer, and a freed entry, with that buffer, is the next
// insertion's. So locks that come and go cost no allocation even when every key is new.
//
// Expired entries are removed when touched. For those not touched again, each insertion looks at
// two more entries: a table therefore never holds many more dead keys than live ones, and needs no
// goroutine.
type table struct {
	seed    maphash.Seed
	byHash  map[uint64]*entry // of its key: that two have one is an accident that ends the test
	entries []*entry          // the free ones too
	free    []*entry
	cursor  int // where the next insertion looks for dead entries
	watcher watcher
}

// watcher hears of each key set or removed, expired ones too, but not of clear, and of each value. A watched key is
// not removed before a command touches it.
type watcher interface {
	touched(key []byte)
	wrote(key, value []byte)
	watches(key []byte) bool
}

type entry struct {
	hash    uint64
	keyLen  int
	used    bool
	kind    string
	expires int64  // Unix milliseconds, or never
	data    []byte // the key, then the value

	fence *fencenode.Node  // the value of a fenceKind
	ends  map[string]int64 // the value of a sharedKind: when each member ends
}

const never int64 = 0

func (e *entry) key() []byte   { return e.data[:e.keyLen] }
func (e *entry) value() []byte { return e.data[e.keyLen:] }

// expired reports whether the time of the entry has passed. As in Redis, a key still exists in the
// very millisecond of its end.
func (e *entry) expired(now int64) bool { return e.expires != never && now > e.expires }

func newTable(w watcher) table {
	t := table{seed: maphash.MakeSeed(), watcher: w}
	t.clear()
	return t
}

func (t *table) clear() {
	t.byHash, t.entries, t.free, t.cursor = map[uint64]*entry{}, nil, nil, 0
}

// find returns the entry of a key, expired or not, or nil, and the hash of the key.
func (t *table) find(key []byte) (*entry, uint64) {
	hash := maphash.Bytes(t.seed, key)
	e := t.byHash[hash]
	if e != nil && !bytes.Equal(e.key(), key) {
		panic("fakeredis: two keys have one hash")
	}
	return e, hash
}

// get returns the live entry of a key, or nil. It is valid until it is removed.
func (t *table) get(key []byte, now int64) *entry {
	e, _ := t.find(key)
	if e != nil && e.expired(now) {
		t.remove(e)
		return nil
	}
	return e
}

// put stores a value in e, the result of get for the key, or in a new entry for a nil one.
func (t *table) put(e *entry, key, value []byte, kind string, expires, now int64) {
	if e == nil {
		e = t.insert(key, now)
	}
	e.data = append(e.data[:e.keyLen], value...)
	e.kind, e.expires, e.fence, e.ends = kind, expires, nil, nil
	t.watcher.touched(key)
	t.watcher.wrote(key, value)
}

// del removes a key and reports whether it was there.
func (t *table) del(key []byte, now int64) bool {
	e, _ := t.find(key)
	if e == nil {
		return false
	}
	live := !e.expired(now)
	t.remove(e)
	return live
}

// each calls f for every live entry.
func (t *table) each(now int64, f func(*entry)) {
	for _, e := range t.entries {
		if e.used && !e.expired(now) {
			f(e)
		}
	}
}

// insert makes an entry for a key not in the table.
func (t *table) insert(key []byte, now int64) *entry {
	t.sweep(now)
	if len(t.free) == 0 {
		e := new(entry)
		t.entries, t.free = append(t.entries, e), append(t.free, e)
	}
	e := t.free[len(t.free)-1]
	t.free = t.free[:len(t.free)-1]
	_, e.hash = t.find(key)
	e.data = append(e.data[:0], key...)
	e.keyLen, e.used = len(key), true
	t.byHash[e.hash] = e
	return e
}

// sweep looks at the next two entries.
func (t *table) sweep(now int64) {
	for range min(2, len(t.entries)) {
		t.cursor = (t.cursor + 1) % len(t.entries)
		if e := t.entries[t.cursor]; e.used && e.expired(now) && !t.watcher.watches(e.key()) {
			t.remove(e)
		}
	}
}

// remove makes an entry free.
func (t *table) remove(e *entry) {
	delete(t.byHash, e.hash)
	t.free = append(t.free, e)
	e.used, e.fence, e.ends = false, nil, nil
	t.watcher.touched(e.key())
	if cap(e.data) > maxKeptBuffer {
		e.data = nil
	}
}
