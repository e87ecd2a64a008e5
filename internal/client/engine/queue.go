package engine

import (
	"sync"
	"sync/atomic"
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
	mu         sync.Mutex
	head, tail *Op
	renewals   list
	ending     bool // no acquire is taken any more
	closed     bool
	limit      int
	scanned    *Op          // the last one that scan has looked at; nil is none
	size       atomic.Int64 // written under mu, read without it
	depth      atomic.Int64 // operations submitted by callers and without a result, here and at the nodes
}

// serials counts the operations of all clients of this process.
var serials atomic.Uint64

// Serial returns the number of an operation that would be queued now: greater than that of each before.
func Serial() uint64 { return serials.Add(1) }

// Serials is the greatest number so far.
func Serials() uint64 { return serials.Load() }

// refuses reports whether the closing engine takes no more of a kind. q.mu is held.
func (q *queue) refuses(k Kind) bool { return q.closed || q.ending && k == Acquire }

// end refuses acquires from now on.
func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ending = true
}

// urgency is how operations are queued.
type urgency uint8

const (
	bounded   urgency = iota // or refused
	unbounded                // their number is bounded by other means
	unawaited                // likewise; releases, without a waiting caller
	renewals                 // likewise; they are taken first, and cannot be removed
	cleanUp                  // likewise; also while the engine is closing
)

// push appends op, or returns why not.
func (q *queue) push(op *Op, u urgency) error {
	var l list
	l.push(op)
	err, _ := q.pushAll(l, nil, u)
	return err
}

// pushAll appends all of l, operations of one kind, or returns why none. Behind them it appends the acquire along,
// if that is not nil, or says why it was in vain: what ends acquires ends no release.
func (q *queue) pushAll(l list, along *Op, u urgency) (err, vain error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := l.n
	if along != nil {
		n++
	}
	switch {
	case q.refuses(l.first.Kind) && u != cleanUp:
		return ErrClosed, ErrClosed
	case int(q.size.Load())+n > q.limit && u == bounded:
		return ErrBusy, ErrBusy
	case along != nil && q.refuses(Acquire):
		vain = ErrClosed
	case along != nil:
		l.push(along)
	}
	q.size.Add(int64(l.n))
	if u == renewals {
		for op := l.first; op != nil; op = op.next {
			op.advance(queued)
		}
		q.renewals.append(l)
		return nil, vain
	}
	before, serial := q.tail, serials.Add(uint64(l.n))-uint64(l.n)
	for op := l.first; op != nil; op = op.next {
		op.advance(queued)
		serial++
		op.Serial, op.prev, before = serial, before, op
	}
	if q.tail == nil {
		q.head = l.first
	} else {
		q.tail.next = l.first
	}
	q.tail = l.last
	return nil, vain
}

// remove takes op out if it is still waiting here.
func (q *queue) remove(op *Op) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
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
	if op.prev == nil {
		q.head = op.next
	} else {
		op.prev.next = op.next
	}
	if op.next == nil {
		q.tail = op.prev
	} else {
		op.next.prev = op.prev
	}
	op.next, op.prev = nil, nil
	q.size.Add(-1)
	op.advance(phase)
}

// replace puts other in the place of op, which it leaves idle. q.mu is held.
func (q *queue) replace(op, other *Op) {
	other.advance(queued)
	other.next, other.prev = op.next, op.prev
	if other.prev == nil {
		q.head = other
	} else {
		other.prev.next = other
	}
	if other.next == nil {
		q.tail = other
	} else {
		other.next.prev = other
	}
	if q.scanned == op {
		q.scanned = other
	}
	op.next, op.prev = nil, nil
	op.advance(idle)
}

// scan calls visit for at most n operations, with q.mu held, from the end of the last scan. visit may unlink the
// operation, or replace it.
//
// It is bounded because submitters wait for q.mu: a look at all of 65,536 operations takes milliseconds, and the
// watchdog looks every few.
func (q *queue) scan(n int, visit func(*Op)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	op := q.head
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

// take detaches renewals and then the oldest other operations, at least one and at most as many as both bounds allow;
// without acquires, those before the first of them.
func (q *queue) take(ops, keyBytes int, acquires bool) (first *Op, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var taken list
	for taken.n < ops && keyBytes > 0 {
		op := q.renewals.pop()
		if op == nil && q.head != nil && (acquires || q.head.Kind != Acquire) {
			op = q.pop()
		}
		if op == nil {
			break
		}
		op.advance(sending)
		keyBytes -= len(op.Key)
		taken.push(op)
	}
	q.size.Add(-int64(taken.n))
	return taken.first, taken.n
}

// pop detaches the oldest operation, renewals aside. q.mu is held.
func (q *queue) pop() *Op {
	op := q.head
	if op == nil {
		return nil
	}
	if q.scanned == op {
		q.scanned = nil
	}
	q.head = op.next
	if q.head == nil {
		q.tail = nil
	} else {
		q.head.prev = nil
	}
	op.next = nil
	return op
}

// putBack returns operations, taken but not sent, to the front.
func (q *queue) putBack(l list) {
	if l.first == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	var prev *Op
	for op := l.first; op != nil; op = op.next {
		op.prev, prev = prev, op
		op.advance(queued)
	}
	l.last.next = q.head
	if q.head != nil {
		q.head.prev = l.last
	} else {
		q.tail = l.last
	}
	q.head = l.first
	q.size.Add(int64(l.n))
}

// close refuses further callers.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
}
