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
	first                    [160]byte    // the first error
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

// grant notes that the goroutine at index me of crews of so many has the key, for
// which it has waited since. Without a slot it shares the key.
func (b *board) grant(s *slot, me, workers int, since, granted, until int64, ttl time.Duration) {
	r, crew := &b.records[me], &b.crews[me/workers]
	counted := b.counts(granted)
	r.last.Store(granted)
	b.mu.Lock()
	defer b.mu.Unlock()
	if counted {
		r.grants++
		crew.wait.Record(time.Duration(granted-since), 1)
	}
	if s == nil {
		return
	}
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
}

// meets reports whether the slot's last holder had the key at an instant from one stamp to another. A goroutine that
// was stopped on its way to the board comes when its time is over, and after its successor: the order of the swaps is
// not that of the grants. The end is read first, since it is written last.
func (s *slot) meets(from, to int64) bool { return from < s.until.Load() && s.granted.Load() < to }

// release notes that the goroutine is about to release the key.
func (b *board) release(s *slot, me int, until int64) {
	at := now()
	r := &b.records[me]
	r.end = at
	if s == nil {
		return
	}
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
