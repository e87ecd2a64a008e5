package waiting

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/quorum"
)

const (
	// knownFor is how long a key counts as contended after its last waiter, and maxKnown for how many keys of a
	// shard.
	knownFor = 3 * time.Second
	maxKnown = 1024

	// denialLasts is how long a grant or a denial speaks for calls that have not waited for it.
	denialLasts = time.Second
)

// line is the waiting callers of a key, in the order of their arrival, and what is known of its lock. It is kept
// while callers wait, while busy, and until known. The lock of its shard protects it.
type line struct {
	contender contention.Contender
	key       string
	youngest  uint64        // the number of the youngest grant seen by the line; 0: none
	unknown   uint64        // grants up to this number may have been followed by others, unseen
	passedAt  uint64        // the greatest number of all operations when the lock was passed on last
	held      clock.Instant // until when a holder in this process is known to have the lock
	passes    int           // how often the lock may still pass on before other processes have their turn
	busy      bool          // a waiter acts for the line; another must not
	known     clock.Instant // until when the key is known to be contended
	outcome   error         // of the last attempt, for the other callers; nil: there was none
	ended     clock.Instant // when that attempt ended
	denied    clock.Instant // until when the last attempt counts as a denial
	kept      clock.Instant // until when sets may keep turns; 0: the lock has had a holder since

	first, last *Waiter
	len, places int // waiters, and the places of choices among them
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

// count counts a waiter that comes (d is 1) or leaves (-1).
func (l *line) count(w *Waiter, d int) {
	l.len += d
	if w.place != nil {
		l.places += d
	}
}

// callers is how many callers wait here. A choice counts with its share.
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

// actor is the waiter to act for the line: the first with a goroutine outside user code. It is nil without one.
func (l *line) actor() *Waiter {
	w := l.first
	for w != nil && w.isAway() {
		w = w.next
	}
	return w
}

// wake wakes the actor.
func (l *line) wake() {
	if w := l.actor(); w != nil {
		w.bell.ring()
	}
}

// wakeSets wakes the waiters of sets to a key left free, unless they know of it.
func (l *line) wakeSets() {
	for w := l.first; w != nil; w = w.next {
		if w.isOfSet() && !w.free {
			w.bell.ring()
		}
	}
}

// failed notes the end of an attempt of one of its callers without the lock. How a caller itself has ended it says
// nothing to the others, and neither does one that ended before the last known.
func (l *line) failed(at clock.Instant, err error) {
	if !IsRetryable(err) || at < l.ended {
		return
	}
	l.outcome, l.ended, l.denied = err, at, 0
	if err == engine.ErrTaken {
		l.denied, l.kept = at.Add(denialLasts), 0
	}
}

// granted notes that one of its callers has the lock, until then. For the others it is taken.
func (l *line) granted(now, until clock.Instant) {
	l.held, l.outcome, l.ended, l.denied, l.kept = until, engine.ErrTaken, now, 0, 0
}

// news is what is known to a caller who began then: how the last attempt ended, nil: nothing. It is news only if it
// ended while the caller waited, or in the second before.
func (l *line) news(now, began clock.Instant) error {
	switch {
	case now < l.held:
		return engine.ErrTaken
	case l.ended < began.Add(-denialLasts):
		return nil
	}
	return l.outcome
}

// keep is until when a set keeps a turn for which it has waited. All sets together keep the lock free for keepMost, and
// again only once it had a holder, or was left to others for as long.
func (l *line) keep(now clock.Instant, waited time.Duration) (until clock.Instant) {
	if l.kept == 0 || now >= l.kept.Add(keepMost) {
		l.kept = now.Add(keepMost)
	}
	return min(now.Add(max(keepLeast, waited)), l.kept)
}

// isTaken reports whether the lock was seen to have a holder: one of this process, or one for which the nodes denied
// the last attempt.
func (l *line) isTaken(now clock.Instant) bool { return now < l.held || now < l.denied }

// won notes that the nodes, except those of denied, have granted the lock to w, until then. Before other processes
// have their turn the lock may pass on to the present waiters, or further if no other process is known.
func (l *line) won(w *Waiter, s *contention.Surroundings, until clock.Instant, denied quorum.Set) {
	l.contender.Won(s, denied)
	l.granted(s.Now, until)
	l.passes = maxPasses - 1
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

// toEnd moves w to the end.
func (l *line) toEnd(w *Waiter) {
	l.remove(w)
	l.push(w)
}

// stands notes a grant by its number, and reports whether it does stand. It does not if a younger one is known: the key
// was lost before that. It does not either if the lock was passed on while the grant was on its way: an operator has
// deleted the key of that lock, and the caller who has got it may be using it.
func (l *line) stands(serial uint64, now clock.Instant) bool {
	if l.isPast(serial) || serial <= l.passedAt && now < l.held {
		return false
	}
	l.youngest = serial
	return true
}

// isPast reports whether a younger grant is known.
func (l *line) isPast(serial uint64) bool { return serial < l.youngest }

// mayPass returns the waiter for the lock of a grant to pass on to, or nil. Only the youngest grant is passed on: the
// holder of another one has lost its lock, though its validity may last longer.
func (l *line) mayPass(serial uint64, now clock.Instant) *Waiter {
	if serial != max(l.youngest, l.unknown) || l.passes <= 0 || l.contender.LeavesFree(now) {
		return nil
	}
	return l.taker()
}

// taker is the waiter for a lock, or for its next acquire, to be given to, or nil: the actor, if it rests.
func (l *line) taker() *Waiter {
	if w := l.actor(); w != nil && w.rests && !w.whole {
		return w
	}
	return nil
}

// passed notes that the lock was passed on to w. w leaves the line, or moves to its end if it stands for a choice.
// The next in line sleeps on: the sentry wakes it when the process has to ask the nodes.
func (l *line) passed(w *Waiter, now, until clock.Instant) {
	l.remove(w)
	if w.place != nil {
		l.push(w)
	}
	l.granted(now, until)
	l.passedAt = engine.Serials()
	l.passes--
	l.contender.Passed(now)
}

// along returns the waiter that may ask for the lock of a grant at the moment of its release, or nil. It acts from now
// on.
func (l *line) along(serial uint64, now clock.Instant) *Waiter {
	if l.isPast(serial) || l.busy || !l.contender.MayAttempt() || l.contender.LeavesFree(now) {
		return nil
	}
	w := l.taker()
	if w == nil || w.place != nil {
		return nil
	}
	l.held = 0
	l.contender.Freed()
	l.busy, w.acts, w.sent = true, l, true
	return w
}

// freed notes that the lock of a grant, or of an unknown one (0), was given back or lost: no holder in this process
// has the lock any more, unless a younger grant is known.
func (l *line) freed(serial uint64, now clock.Instant) {
	if serial != 0 && l.isPast(serial) {
		return
	}
	l.held, l.denied = 0, 0
	l.contender.Freed()
	if l.first == nil {
		l.contender.Unwanted(now)
	}
	l.wake()
}

// pushed notes a node's push, of the key or of the process's ticket for it. It reports whether the process may no
// longer need its place.
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
