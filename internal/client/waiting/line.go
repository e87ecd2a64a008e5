package waiting

import (
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/quorum"
)

const (
	// knownFor is how long a key counts as contended once none waits for it, and maxKnown
	// for how many keys of a shard.
	knownFor = 3 * time.Second
	maxKnown = 1024

	// denialLasts is how long an attempt that was denied speaks for calls that do not wait.
	denialLasts = time.Second
)

// line is the callers that wait for a key, in the order in which they came, and what is known
// of its lock. It is kept while callers wait, while busy, and until known. The lock of its
// shard protects it.
type line struct {
	contender contention.Contender
	key       string
	held      time.Duration // a holder in this process is known to have the lock until then
	passes    int           // how often the lock may still pass on before other processes have their turn
	busy      bool          // a waiter acts for the line; another must not
	known     time.Duration // until when the key is known to be contended
	outcome   error         // of the last attempt, for the other callers; nil: there was none
	denied    time.Duration // until when the last attempt counts as a denial

	first, last *Waiter
	len, places int // waiters, and those of choices among them
}

// push puts w at the end.
func (l *line) push(w *Waiter) {
	w.line, w.prev, w.next = l, l.last, nil
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	l.count(w, 1)
}

// remove takes w out.
func (l *line) remove(w *Waiter) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.line, w.prev, w.next = nil, nil, nil
	l.count(w, -1)
}

// count counts a waiter that has come, or left.
func (l *line) count(w *Waiter, d int) {
	if l.len += d; w.place != nil {
		l.places += d
	}
}

// callers is how many wait here: of those of a choice, its share.
func (l *line) callers() (n int) {
	n = l.len
	for w, places := l.first, l.places; places > 0; w = w.next {
		if w.place != nil {
			n += w.place.choice.share() - 1
			places--
		}
	}
	return n
}

// actor is the one that acts for the line: the first with a goroutine that is not in user code.
// It is nil where there is none.
func (l *line) actor() *Waiter {
	w := l.first
	for w != nil && w.isAway() {
		w = w.next
	}
	return w
}

// wake wakes the one that acts for the line.
func (l *line) wake() {
	if w := l.actor(); w != nil {
		w.bell.ring()
	}
}

// wakeSets wakes those of a set that do not know that the key is left free.
func (l *line) wakeSets() {
	for w := l.first; w != nil; w = w.next {
		if w.isOfSet() && !w.free {
			w.bell.ring()
		}
	}
}

// attempted notes how an attempt of one of its callers has ended. Where the lock was granted, it is taken
// for the others.
func (l *line) attempted(now time.Duration, err error) {
	switch {
	case err == nil:
		l.outcome, l.denied = engine.ErrTaken, 0
	case IsRetryable(err):
		if l.outcome, l.denied = err, 0; err == engine.ErrTaken {
			l.denied = now + denialLasts
		}
	}
}

// isTaken reports whether the lock has a holder, as was seen: one of this process, or one for which the
// nodes denied the last attempt.
func (l *line) isTaken(now time.Duration) bool { return now < l.held || now < l.denied }

// won notes that the nodes have granted the lock to w, until then, except those of denied. Before
// other processes have their turn the lock may pass on to those that wait now, or further if
// no other process is known.
func (l *line) won(w *Waiter, s *contention.Surroundings, until time.Duration, denied quorum.Set) {
	l.contender.Won(s, denied)
	l.held, l.passes = until, maxPasses-1
	others := l.callers()
	if w.place == nil {
		others--
	} else if w.line == l {
		l.toEnd(w)
	}
	if l.contender.Others() > 0 {
		l.passes = min(l.passes, others)
	}
}

// toEnd has w stand at the end.
func (l *line) toEnd(w *Waiter) {
	l.remove(w)
	l.push(w)
}

// mayPass returns the waiter that the lock may pass on to, or nil. A holder has lost its lock
// if validity ends before that of the one that the line knows.
func (l *line) mayPass(now, until time.Duration) *Waiter {
	if l.passes <= 0 || until < l.held || l.contender.LeavesFree(now) {
		return nil
	}
	if w := l.actor(); w != nil && !w.whole {
		return w
	}
	return nil
}

// passed notes that the lock was passed on to w, which leaves the line, or stands there for others. The next in
// line sleeps on: the sentry wakes it when the process has to ask the nodes.
func (l *line) passed(w *Waiter, now, until time.Duration) {
	if l.remove(w); w.place != nil {
		l.push(w)
	}
	l.held = until
	l.passes--
	l.contender.Passed(now)
}

// along returns the waiter that may ask for the lock at the moment at which its holder gives
// that back, or nil. It acts from now on.
func (l *line) along(now time.Duration) *Waiter {
	if l.busy || !l.contender.MayAttempt() || l.contender.LeavesFree(now) {
		return nil
	}
	w := l.actor()
	if w == nil || w.whole || w.place != nil || !w.parked {
		return nil
	}
	l.held = 0
	l.contender.Freed()
	l.busy, w.acts, w.sent = true, l, true
	return w
}

// freed notes that the lock has no holder in this process any more.
func (l *line) freed(now time.Duration) {
	l.held, l.denied = 0, 0
	l.contender.Freed()
	if l.first == nil {
		l.contender.Unwanted(now)
	}
	l.wake()
}

// pushed notes that a node has pushed the key, or the process's ticket for it. It
// reports whether the process has a place that it may not need.
func (l *line) pushed(node int, ofLock bool) (vacant bool) {
	matters := false
	if ofLock {
		matters = l.contender.Pushed(node)
	} else if matters = l.contender.Rung(node); matters {
		l.passes = min(l.passes, l.callers())
	}
	if !matters {
		return false
	}
	l.wake()
	return l.first == nil
}
