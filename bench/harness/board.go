package harness

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// board is the memory that the processes of a contended cell share. A new holder of a key swaps
// itself into the key's slot, and so learns whether the last holder has released, and when. The
// counts of a process that is killed stay on the board.
type board struct {
	*window
	slots   []slot   // one a key
	crews   []crew   // one a process
	records []record // one a goroutine
	memory  []byte
	shares  bool       // some share a key: each holder looks for them
	mu      sync.Mutex // for the histograms of the own process
}

// window is when the cell is counted; all times are stamps of [now].
type window struct{ from, to atomic.Int64 }

// slot is one key.
type slot struct {
	holder   atomic.Int64 // 1 + the index of its record, or 0
	granted  atomic.Int64
	until    atomic.Int64 // the end of the holder's validity
	released atomic.Int64 // before the release was asked for
	by       atomic.Int64 // the worker that released, written as holder is
	_        [3]int64
}

// crew is one process.
type crew struct {
	cpuFrom, cpuTo atomic.Int64

	wait   Histogram // of grants; a wait that the window has cut counts for the longest only
	same   Histogram // release to grant, within a process
	cross  Histogram // release to grant, from another process
	orphan Histogram // end of the TTL to grant, of a holder that has not released
}

// record is one goroutine. It alone writes there, and the parent reads once it
// has ended.
type record struct {
	grants, overlaps, errors uint64
	last                     atomic.Int64 // its last grant
	end                      int64        // its last release
	shared                   share        // its last shared lock
	first                    [160]byte    // the first error
}

// share is a shared lock that a goroutine has, or had. Its end is written last, and read first and last.
type share struct{ key, from, until atomic.Int64 }

func (s *share) store(key int, from, until int64) {
	s.until.Store(0)
	s.key.Store(int64(key))
	s.from.Store(from)
	s.until.Store(until)
}

// meets reports whether it was there for a key between two stamps.
func (s *share) meets(key int, from, to int64) bool {
	until := s.until.Load()
	return from < until && s.key.Load() == int64(key) && s.from.Load() < to && s.until.Load() == until
}

// boardSize is the size of a board in bytes.
func boardSize(keys, processes, workers int) int {
	return int(unsafe.Sizeof(window{})) + keys*int(unsafe.Sizeof(slot{})) +
		processes*(int(unsafe.Sizeof(crew{}))+workers*int(unsafe.Sizeof(record{})))
}

// layBoard finds the parts of a board in memory, which begins at a page.
func layBoard(memory []byte, keys, processes, workers int) *board {
	b := &board{memory: memory}
	at := unsafe.Pointer(&memory[0])
	b.window = (*window)(at)
	at = unsafe.Add(at, unsafe.Sizeof(window{}))
	b.slots = unsafe.Slice((*slot)(at), keys)
	at = unsafe.Add(at, uintptr(keys)*unsafe.Sizeof(slot{}))
	b.crews = unsafe.Slice((*crew)(at), processes)
	at = unsafe.Add(at, uintptr(processes)*unsafe.Sizeof(crew{}))
	b.records = unsafe.Slice((*record)(at), processes*workers)
	return b
}

// counts reports whether a stamp is in the window.
func (b *board) counts(at int64) bool { return at >= b.from.Load() && at < b.to.Load() }

// drift is the part of a TTL that Redlock takes off its validity.
func drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// count notes a grant, if it is in the window.
func (b *board) count(me, workers int, since, granted int64) bool {
	r := &b.records[me]
	r.last.Store(granted)
	if !b.counts(granted) {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r.grants++
	b.crews[me/workers].wait.Record(time.Duration(granted-since), 1)
	return true
}

// grant notes that the goroutine at index me of crews of so many has the key, for
// which it has waited since.
func (b *board) grant(key int, me, workers int, since, granted, until int64, ttl time.Duration) {
	s := &b.slots[key]
	r, crew := &b.records[me], &b.crews[me/workers]
	counted := b.count(me, workers, since, granted)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch holder := s.holder.Swap(int64(me) + 1); {
	case holder != 0 && s.meets(granted, until):
		r.overlaps++
	case !counted:
	case holder != 0 && granted < s.until.Load(): // it was stopped on its way here
	case holder != 0:
		crew.orphan.Record(time.Duration(granted-s.until.Load())-drift(ttl), 1)
	case s.by.Load() != 0 && s.released.Load() > since: // else the key was not waited for
		h := &crew.cross
		if int(s.by.Load()-1)/workers == me/workers {
			h = &crew.same
		}
		h.Record(time.Duration(granted-s.released.Load()), 1)
	}
	s.granted.Store(granted)
	s.until.Store(until)
	for i := range b.records {
		if b.shares && b.records[i].shared.meets(key, granted, until) {
			r.overlaps++
		}
	}
}

// share notes that the goroutine shares the key.
func (b *board) share(key int, me, workers int, since, granted, until int64) {
	r := &b.records[me]
	r.shared.store(key, granted, until)
	if s := &b.slots[key]; s.holder.Load() != 0 && s.meets(granted, until) {
		r.overlaps++
	}
	b.count(me, workers, since, granted)
}

// meets reports whether the slot's last holder had the key at an instant from one stamp to another. A goroutine that
// was stopped on its way to the board comes when its time is over, and after its successor: the order of the swaps is
// not that of the grants. The end is read first, since it is written last.
func (s *slot) meets(from, to int64) bool { return from < s.until.Load() && s.granted.Load() < to }

// part notes that the goroutine is about to release a shared key.
func (b *board) part(me int) {
	r := &b.records[me]
	r.end = now()
	r.shared.until.Store(min(r.end, r.shared.until.Load()))
}

// release notes that the goroutine is about to release the key.
func (b *board) release(key, me int, until int64) {
	at := now()
	s, r := &b.slots[key], &b.records[me]
	r.end = at
	s.released.Store(at)
	s.by.Store(int64(me) + 1)
	if !s.holder.CompareAndSwap(int64(me)+1, 0) && at < until && s.meets(r.last.Load(), at) {
		r.overlaps++
	}
}

// cut notes a wait of a process that the end of the window has cut.
func (b *board) cut(process int, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.crews[process].wait.Record(wait, 0)
}

// failed notes an error.
func (r *record) failed(err error) {
	r.errors++
	if r.first[0] == 0 {
		copy(r.first[:], err.Error())
	}
}
