package engine

import (
	"sync"
	"sync/atomic"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// queue has the submitted and unsent operations, oldest first. It is bounded for callers, but not for releases: one
// that is refused leaves its key for the TTL. They have a bound of their own. A cleanup follows an accepted operation.
// A lock that is held is released once, or by each of the callers that wait for its release. An Op is its user's memory,
// linked in place, and is in the queue once.
//
// Renewals have a separate list, taken first: a lock kept alive must not end because many other operations wait. A
// renewal may overtake any of them. None of these is a release of its lock: once that is asked for no renewal begins,
// and a begun one is in its list before. One of these may be an extend by the lock's holder. The renewal may overtake
// it: the nodes accept the two in any order (renewal.Validity).
type queue struct {
	mu       sync.Mutex
	ops      list // but the renewals
	renewals list
	ending   bool // no acquire is taken any more
	closed   bool
	limit    int
	scanned  *Op          // the last one looked at by scan; nil is none
	size     atomic.Int64 // of both lists, as unlock leaves it; read without mu
	soonest  atomic.Int64 // when the first Limit ends of those waiting, or before; clock.Never: they have none
	depth    atomic.Int64 // operations submitted by callers and without a result, here and at the nodes
}

// unlock gives mu up.
func (q *queue) unlock() {
	q.size.Store(int64(q.ops.n + q.renewals.n))
	q.mu.Unlock()
}

// serials counts the operations of all clients of this process.
var serials atomic.Uint64

// Serial returns the number of an operation that would be queued now: greater than that of each before.
func Serial() uint64 { return serials.Add(1) }

// Serials is the greatest number so far.
func Serials() uint64 { return serials.Load() }

// refuses reports whether the closing engine takes no more of a kind. q.mu is held.
func (q *queue) refuses(k Kind) bool { return q.closed || q.ending && k == Acquire }

// end refuses acquires from now on, or all operations.
func (q *queue) end(all bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ending, q.closed = true, q.closed || all
}

// push appends all of l, operations of one kind that end alike, or returns why none. Behind them it appends the
// acquire along, if that is not nil, or says why it was in vain: what ends acquires ends no release. Releases without
// companion, renewals, and what no caller waits for are bounded by other means; a cleanup is taken even after close.
func (q *queue) push(l list, along *Op) (err, vain error) {
	q.mu.Lock()
	defer q.unlock()
	kind, ends, n := l.first.Kind, l.first.Ends, q.ops.n+q.renewals.n+l.n
	bounded := kind != Release && ends != Prompt
	if along != nil {
		n++
		bounded = ends.isAwaited()
	}
	switch {
	case q.refuses(kind) && ends != cleansUp:
		return ErrClosed, ErrClosed
	case bounded && n > q.limit:
		return ErrBusy, ErrBusy
	case along != nil && q.refuses(Acquire):
		vain = ErrClosed
	case along != nil:
		l.push(along)
	}
	serial := serials.Add(uint64(l.n)) - uint64(l.n)
	for op := l.first; op != nil; op = op.next {
		op.advance(queued)
		serial++
		op.Serial = serial
		q.noteLimit(op)
	}
	if ends == Prompt {
		q.renewals.append(l)
	} else {
		q.ops.append(l)
	}
	return nil, vain
}

// remove takes op out if it is still waiting here.
func (q *queue) remove(op *Op) bool {
	q.mu.Lock()
	defer q.unlock()
	if op.state.Load()&phaseMask != queued {
		return false
	}
	q.unlink(op, idle)
	return true
}

// unlink takes op out and leaves it in a phase. q.mu is held.
func (q *queue) unlink(op *Op, phase uint64) {
	if q.scanned == op {
		q.scanned = op.prev
	}
	q.ops.remove(op)
	op.advance(phase)
}

// replace puts other in the place of op, which it leaves decided. q.mu is held.
func (q *queue) replace(op, other *Op) {
	other.advance(queued)
	q.ops.insert(op, other)
	q.unlink(op, decided)
	q.scanned = other
}

// scan calls visit for at most n operations, with q.mu held, from the end of the last scan. visit may unlink the
// operation, or replace it.
//
// It is bounded because submitters wait for q.mu: a look at all of 65,536 operations takes milliseconds, and the
// watchdog looks every few.
func (q *queue) scan(n int, visit func(*Op)) {
	q.mu.Lock()
	defer q.unlock()
	op := q.ops.first
	if q.scanned != nil {
		op = q.scanned.next
	}
	for ; op != nil && n > 0; n-- {
		next := op.next
		q.scanned = op
		visit(op)
		op = next
	}
	if op == nil {
		q.scanned = nil // from the oldest again
	}
}

// noteLimit counts the Limit of a waiting operation. q.mu is held.
func (q *queue) noteLimit(op *Op) {
	if at := int64(op.limit.At); at != 0 && at < q.soonest.Load() {
		q.soonest.Store(at)
	}
}

// toScan is how many operations the watchdog is to scan: a part, for ended contexts; all, once a Limit may have ended.
func (q *queue) toScan(now clock.Instant) (n int, all bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now < clock.Instant(q.soonest.Load()) {
		return scanWaiting, false
	}
	q.soonest.Store(int64(clock.Never)) // scan notes the rest
	q.scanned = nil
	return q.ops.n, true
}

// take detaches renewals and then the oldest other operations, at least one and at most as many as both bounds allow;
// without acquires, those before the first of them.
func (q *queue) take(ops, keyBytes int, acquires bool) (taken list) {
	q.mu.Lock()
	defer q.unlock()
	for taken.n < ops && keyBytes > 0 {
		op := q.renewals.pop()
		switch first := q.ops.first; {
		case op != nil:
			op.advance(sending)
		case first != nil && (acquires || first.Kind != Acquire):
			op = first
			q.unlink(op, sending)
		default:
			return taken
		}
		keyBytes -= len(op.Key)
		taken.push(op)
	}
	return taken
}

// putBack returns operations, taken but not sent, to the front.
func (q *queue) putBack(l list) {
	if l.n == 0 {
		return
	}
	q.mu.Lock()
	defer q.unlock()
	for op := l.first; op != nil; op = op.next {
		op.advance(queued)
		q.noteLimit(op)
	}
	if q.ops.n > 0 {
		l.append(q.ops)
	}
	q.ops = l
}
