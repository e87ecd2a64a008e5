package renewal

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// Lock decides about one lock kept alive. Its events are the next renewal and the end of its validity; during a
// renewal, only the latter. Each method returns the next instant. The user waits for it, and then calls Event.
type Lock struct {
	busy bool // a renewal is under way
}

// Held is a lock as its holder sees it.
type Held struct {
	Until    clock.Instant // the end of its validity
	TTL      time.Duration // the TTL last asked of the nodes
	Released bool          // or about to be released, or gone
}

// Action is what is to be done.
type Action uint8

const (
	Wait  Action = iota
	Renew        // begin a renewal, and wait for its Result and for next

	// The lock is no longer kept alive.
	Stop   // it was released
	Expire // its validity is over
	Lose   // too few nodes have it
)

// Event returns the action at an instant.
func (l *Lock) Event(h Held, now clock.Instant) (a Action, next clock.Instant) {
	switch {
	case h.Released:
		return Stop, 0
	case now >= h.Until:
		return Expire, 0
	case l.busy:
		return Wait, h.Until
	}
	l.busy = true
	return Renew, h.Until
}

// Result returns the action after the renewal under way, begun at an instant. h is the lock after it. random is as in
// Retry.
func (l *Lock) Result(r Result, h Held, began, now clock.Instant, random float64) (a Action, next clock.Instant) {
	l.busy = false
	switch {
	case h.Released:
		return Stop, 0
	case r == Lost:
		return Lose, 0
	case r == Won:
		next = Next(began, h.TTL)
	default:
		next = Retry(now, h.Until, random)
	}
	return Wait, min(next, h.Until)
}

// Review returns the next event of a lock whose TTL counts from since: at the start, and again after its holder has
// extended the lock, or has found it lost.
func (l *Lock) Review(h Held, since clock.Instant) (next clock.Instant) {
	if l.busy {
		return h.Until
	}
	return min(Next(since, h.TTL), h.Until)
}
