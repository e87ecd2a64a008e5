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

// table is one database. A Go map would copy the key of each insertion to the heap; this one keeps
// key and value in a buffer of the entry and hands freed entries, buffers included, to the next
// insertion. So locks that come and go cost no allocation even when every key is new.
//
// Expired entries are removed when touched. For those not touched again, each insertion looks at
// two more entries: a table therefore never holds many more dead keys than live ones, and needs no
// goroutine.
type table struct {
	seed    maphash.Seed
	buckets []int32 // index of the first entry of a chain, or none
	entries []entry
	free    int32 // head of the chain of free entries
	count   int
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
	next    int32
	keyLen  int32
	used    bool
	kind    string
	expires int64  // Unix milliseconds, or never
	data    []byte // the key, then the value

	fence *fencenode.Node  // the value of a fenceKind
	ends  map[string]int64 // the value of a sharedKind: when each member ends
}

const (
	none  int32 = -1
	never int64 = 0
)

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
	t.buckets = make([]int32, 64)
	for i := range t.buckets {
		t.buckets[i] = none
	}
	t.entries, t.free, t.count, t.cursor = nil, none, 0, 0
}

// get returns the live entry of a key, or nil. It is valid until the next call of put.
func (t *table) get(key []byte, now int64) *entry {
	hash := maphash.Bytes(t.seed, key)
	for i := *t.bucket(hash); i != none; i = t.entries[i].next {
		e := &t.entries[i]
		if e.hash == hash && bytes.Equal(e.key(), key) {
			if e.expired(now) {
				t.remove(i)
				return nil
			}
			return e
		}
	}
	return nil
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
	hash := maphash.Bytes(t.seed, key)
	for i := *t.bucket(hash); i != none; i = t.entries[i].next {
		e := &t.entries[i]
		if e.hash == hash && bytes.Equal(e.key(), key) {
			live := !e.expired(now)
			t.remove(i)
			return live
		}
	}
	return false
}

// each calls f for every live entry.
func (t *table) each(now int64, f func(*entry)) {
	for i := range t.entries {
		if e := &t.entries[i]; e.used && !e.expired(now) {
			f(e)
		}
	}
}

// insert makes an entry for a key not in the table.
func (t *table) insert(key []byte, now int64) *entry {
	t.sweep(now)
	if t.free == none {
		t.entries = append(t.entries, entry{next: none})
		t.free = int32(len(t.entries) - 1)
	}
	if t.count >= len(t.buckets) {
		t.grow()
	}
	i := t.free
	e := &t.entries[i]
	t.free = e.next
	e.hash = maphash.Bytes(t.seed, key)
	e.data = append(e.data[:0], key...)
	e.keyLen, e.used = int32(len(key)), true
	head := t.bucket(e.hash)
	e.next, *head = *head, i
	t.count++
	return e
}

// sweep looks at the next two entries.
func (t *table) sweep(now int64) {
	for range min(2, len(t.entries)) {
		if t.cursor >= len(t.entries) {
			t.cursor = 0
		}
		if e := &t.entries[t.cursor]; e.used && e.expired(now) && !t.watcher.watches(e.key()) {
			t.remove(int32(t.cursor))
		}
		t.cursor++
	}
}

// remove takes an entry out of its chain and makes it free.
func (t *table) remove(i int32) {
	e := &t.entries[i]
	link := t.bucket(e.hash)
	for *link != i {
		link = &t.entries[*link].next
	}
	*link = e.next
	e.next, t.free = t.free, i
	e.used, e.fence, e.ends = false, nil, nil
	t.count--
	t.watcher.touched(e.key())
	if cap(e.data) > maxKeptBuffer {
		e.data = nil
	}
}

func (t *table) grow() {
	t.buckets = make([]int32, 2*len(t.buckets))
	for i := range t.buckets {
		t.buckets[i] = none
	}
	for i := range t.entries {
		if e := &t.entries[i]; e.used {
			head := t.bucket(e.hash)
			e.next, *head = *head, int32(i)
		}
	}
}

func (t *table) bucket(hash uint64) *int32 {
	return &t.buckets[hash&uint64(len(t.buckets)-1)]
}
