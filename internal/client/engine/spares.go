package engine

import (
	"slices"
	"time"
	"unsafe"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// spares is batches for later use. The youngest is used first. So those at the bottom are what a burst has needed, and
// go when they were not used for a while. The driver lock protects it.
type spares struct {
	all    []*batch
	kept   int           // their bytes beyond their own memory
	unused int           // at the bottom, not used since the last trim
	due    clock.Instant // of the next trim; or Never
}

const (
	// mostKept bounds the bytes of spares under load: 2,048 callers need two thirds of it.
	mostKept = 8 << 20
	// leastKept is how many spares are never dropped: a slab, so calls now and then allocate nothing.
	leastKept = 32
	trimPause = 5 * time.Second
)

func (s *spares) push(b *batch) {
	s.kept += b.grown()
	s.all = append(s.all, b)
}

// pop returns the youngest one. No operation decided before reads a spare any more, so it is the moment to keep mostKept.
func (s *spares) pop() *batch {
	last := len(s.all) - 1
	b := s.all[last]
	s.all[last] = nil
	s.all = s.all[:last]
	s.kept -= b.grown()
	s.unused = min(s.unused, last)
	for i := 0; s.kept > mostKept && i < last; i++ {
		s.shrink(s.all[i])
	}
	return b
}

func (s *spares) shrink(b *batch) {
	s.kept -= b.grown()
	b.shrink()
}

// trim frees what was not used since the last trim, and returns when the next is due. A batch is part of a slab, which is
// there for as long as any of its batches: so one that is dropped gives back its memory first.
func (s *spares) trim(now clock.Instant) (due clock.Instant) {
	if now >= s.due {
		for _, b := range s.all[:s.unused] {
			s.shrink(b)
		}
		drops := min(s.unused, max(0, len(s.all)-leastKept))
		s.all = slices.Delete(s.all, 0, drops)
		if cap(s.all) > 4*(len(s.all)+leastKept) {
			s.all = slices.Clone(s.all)
		}
		s.unused, s.due = len(s.all), clock.Never
	}
	if s.due == clock.Never && (s.kept > 0 || len(s.all) > leastKept) {
		s.due = now.Add(trimPause)
	}
	return s.due
}

// grown is the bytes of a batch beyond its own memory.
func (b *batch) grown() int {
	n := b.first.grown(len(b.own.bytes), len(b.own.spans))
	for _, w := range b.others {
		n += int(unsafe.Sizeof(*w)) + w.grown(0, 0)
	}
	return n + sizeOf(b.rounds, len(b.own.rounds)) + sizeOf(b.runs, len(b.own.runs)) + sizeOf(b.failures, 0) + sizeOf(b.answers, 0)
}

func (w *wire) grown(bytes, spans int) int {
	return sizeOf(w.Buf, bytes) + sizeOf(w.Usual, 0) + sizeOf(w.spans, spans)
}

// sizeOf is the bytes of a slice, or 0 if it is of a batch's own memory, with room for so many.
func sizeOf[T any](s []T, own int) int {
	if cap(s) <= own {
		return 0
	}
	var one T
	return cap(s) * int(unsafe.Sizeof(one))
}

// shrink has a batch use its own memory alone, and keeps nothing of its operations.
func (b *batch) shrink() {
	clear(b.own.rounds[:])
	b.first.Buf, b.first.Usual, b.first.spans = b.own.bytes[:0], nil, b.own.spans[:0]
	b.rounds, b.runs = b.own.rounds[:0], b.own.runs[:0]
	b.failures, b.answers, b.others = nil, nil, nil
	clear(b.cause)
}
