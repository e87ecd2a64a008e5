// Package waiters keeps the callers that wait for locks in one process in the order in which
// they came: a line for each key. It is pure: no lock, clock or channel.
//
// The first of a line is the only one that asks the nodes. The literature calls this lock
// cohorting: threads of one process compete for a local lock, and its owner for the
// global one, which is passed on inside the process for a bounded time (Dice, Marathe,
// Shavit: Lock Cohorting, 2012).
package waiters

import "time"

// Waiter is a place in a line. Owner is its user's own. It must not be copied while it is
// in a line.
type Waiter[T any] struct {
	Owner      T
	line       *line[T]
	prev, next *Waiter[T]
}

// line is all that wait for a key. The zero value of until says that nothing is known.
type line[T any] struct {
	key         string
	first, last *Waiter[T]
	until       time.Duration
}

// Table is the lines of many keys. The zero value is empty.
type Table[T any] struct {
	lines map[string]*line[T]
	free  []*line[T]
}

// maxFree bounds the lines that are kept for keys to come.
const maxFree = 64

// Join puts w at the end of the line for key, and returns whether it is the first.
func (t *Table[T]) Join(key string, w *Waiter[T]) (first bool) {
	l := t.lines[key]
	if l == nil {
		if n := len(t.free); n > 0 {
			l, t.free = t.free[n-1], t.free[:n-1]
		} else {
			l = new(line[T])
		}
		l.key = key
		if t.lines == nil {
			t.lines = make(map[string]*line[T])
		}
		t.lines[key] = l
	}
	w.line, w.prev, w.next = l, l.last, nil
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	return l.first == w
}

// Leave takes w out of its line, if it is in one. It returns who is first now, if w was,
// and nil if w was not or none is left.
func (t *Table[T]) Leave(w *Waiter[T]) (first *Waiter[T]) {
	l := w.line
	if l == nil {
		return nil
	}
	if w.prev == nil {
		l.first, first = w.next, w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.line, w.prev, w.next = nil, nil, nil
	if l.first == nil {
		delete(t.lines, l.key)
		*l = line[T]{}
		if len(t.free) < maxFree {
			t.free = append(t.free, l)
		}
	}
	return first
}

// First returns the first in the line for key, or nil.
func (t *Table[T]) First(key string) *Waiter[T] {
	if l := t.lines[key]; l != nil {
		return l.first
	}
	return nil
}

// Waits says whether w is in a line, and whether it is the first.
func (w *Waiter[T]) Waits() (waits, first bool) {
	return w.line != nil, w.line != nil && w.line.first == w
}

// SetUntil notes for the line of key until when a holder in this process is known to hold
// the lock.
func (t *Table[T]) SetUntil(key string, until time.Duration) {
	if l := t.lines[key]; l != nil {
		l.until = until
	}
}

// Until is what SetUntil noted for the line of w, or 0.
func (w *Waiter[T]) Until() time.Duration {
	if w.line == nil {
		return 0
	}
	return w.line.until
}
