// Package waiters decides how the callers of one process, and several processes, wait for
// locks. It is pure: no lock, clock, channel or socket.
//
// A Table keeps the callers of the process in the order in which they came: a line for
// each key. The first of a line is the only one that asks the nodes. The literature calls
// this lock cohorting: threads of one process compete for a local lock, and its owner for
// the global one, which is passed on inside the process for a bounded time (Dice, Marathe,
// Shavit: Lock Cohorting, 2012).
//
// A Contender decides what the first of a line does against the other processes.
package waiters

import "time"

// Waiter is a place in a line. Owner is its user's own. It must not be copied while it is
// in a line.
type Waiter[T any] struct {
	Owner      T
	Look       time.Duration // when it acts by itself; never: it is woken
	line       *Line[T]
	prev, next *Waiter[T]
	acts       *Line[T] // for which it acts; the line is Busy
	asks       bool     // its attempt was given to a release, to be sent along
	Whole      bool     // it wants several keys as one lock: none is passed on to it
	parked     bool
	away       bool // user code has its goroutine: it does nothing for its line
}

// Line is all that wait for a key, and what is known of its lock. It is kept while some
// wait, while Busy, and until Known.
type Line[T any] struct {
	Contender Contender
	Until     time.Duration // a holder in this process is known to have the lock until then
	Passes    int           // how often the lock may still pass on before others have their turn
	Busy      bool          // a waiter acts for the line; another must not
	Known     time.Duration // until when the key is known to be contended

	key         string
	first, last *Waiter[T]
	len         int
}

// Table is the lines of many keys. The zero value is empty. What its user sets decides
// who acts when (turns.go).
type Table[T any] struct {
	Names   []uint64 // of the nodes, hashed
	Outside Outside
	lines   map[string]*Line[T]
	free    []*Line[T]
}

// maxFree bounds the lines that are kept for keys to come.
const maxFree = 64

// Line returns the line for key, or nil.
func (t *Table[T]) Line(key []byte) *Line[T] { return t.lines[string(key)] }

// Find is Line for a string.
func (t *Table[T]) Find(key string) *Line[T] { return t.lines[key] }

// Len is how many lines there are.
func (t *Table[T]) Len() int { return len(t.lines) }

// Join puts w at the end of the line for key, and returns the line, and whether it is new.
func (t *Table[T]) Join(key string, w *Waiter[T]) (l *Line[T], isNew bool) {
	l = t.lines[key]
	if l == nil {
		isNew = true
		if n := len(t.free); n > 0 {
			l, t.free = t.free[n-1], t.free[:n-1]
		} else {
			l = new(Line[T])
		}
		l.key = key
		if t.lines == nil {
			t.lines = make(map[string]*Line[T])
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
	l.len++
	return l, isNew
}

// Leave takes w out of its line, if it is in one. It returns who is first now, if w was,
// and nil if w was not or none is left. The line stays; see Settle.
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
	l.len--
	return first
}

// Settle drops a line that is no longer needed, and returns whether it did.
func (t *Table[T]) Settle(l *Line[T], now time.Duration) bool {
	if l.first != nil || l.Busy || now < l.Known {
		return false
	}
	delete(t.lines, l.key)
	*l = Line[T]{Contender: Contender{order: l.Contender.order}}
	if len(t.free) < maxFree {
		t.free = append(t.free, l)
	}
	return true
}

// Each calls f for each line, which may Settle it.
func (t *Table[T]) Each(f func(key string, l *Line[T])) {
	for key, l := range t.lines {
		f(key, l)
	}
}

// actor is the one that acts for the line: the first that is not away. It is nil where none is.
func (l *Line[T]) actor() *Waiter[T] {
	w := l.first
	for w != nil && w.away {
		w = w.next
	}
	return w
}

// Len is how many wait.
func (l *Line[T]) Len() int { return l.len }

// Key is what they wait for.
func (l *Line[T]) Key() string { return l.key }

// Line is the line that w is in, or nil.
func (w *Waiter[T]) Line() *Line[T] { return w.line }

// IsFirst reports whether w is the first of a line.
func (w *Waiter[T]) IsFirst() bool { return w.line != nil && w.line.first == w }
