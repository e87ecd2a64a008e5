package waiting

import (
	"cmp"
	"errors"
	"math/rand/v2"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
)

// Tries is one Acquire: its attempts, and the pauses between them.
type Tries struct {
	Key      string
	Began    clock.Instant
	Attempts int
	Last     error         // of the last complete attempt, its own or that of a line; see Hear
	Ended    clock.Instant // when its own last attempt ended
	Waited   bool          // it has paused, or stood in line
	End      End           // Failed, unless another end was noted

	lines *Lines
	at    clock.Instant // when the attempt of Last ended
	limit int           // of the attempts; 0: none
	next  clock.Instant // with a limit: when an attempt is counted without a wake-up
	polls bool          // an attempt is made then
}

// NewTries returns the tries of an Acquire of key, beginning now: so many attempts, or 0 for as many as Config has.
func (l *Lines) NewTries(key string, attempts int) Tries {
	return Tries{Key: key, Began: l.cfg.Clock.Now(), lines: l, limit: cmp.Or(attempts, l.cfg.Retry.Attempts), End: Failed}
}

// IsLimited reports whether the attempts are limited.
func (t *Tries) IsLimited() bool { return t.limit > 0 }

// ShouldRetry notes the end of an attempt, and reports whether another is allowed and may do better.
func (t *Tries) ShouldRetry(err error) bool {
	if !IsRetryable(err) {
		return false
	}
	t.Hear(t.Ended, err)
	return t.mayGoOn()
}

// Hear notes how an attempt has ended, unless a later end is known. One of several lines may have had no attempt for a
// second, and what its last one met may be over. nil is no attempt.
func (t *Tries) Hear(at clock.Instant, err error) {
	if err != nil && at >= t.at {
		t.Last, t.at = err, at
	}
}

// mayGoOn reports whether another attempt is allowed.
func (t *Tries) mayGoOn() bool {
	if t.limit == 0 || t.Attempts < t.limit {
		return true
	}
	t.End = Exhausted
	return false
}

// Wait notes a vain attempt, or none. A caller with a limit then waits no longer than a poller: so the limit
// bounds the time of an Acquire too. At an instant to come until an attempt is made, with or without a turn.
func (t *Tries) Wait(polls bool, until clock.Instant) {
	now := t.lines.cfg.Clock.Now()
	t.Waited, t.polls, t.next = true, polls, clock.Never
	if polls || t.limit > 0 {
		t.next = now.Add(t.lines.cfg.Retry.pause(max(1, t.Attempts), rand.N))
	}
	if now < until && until < t.next {
		t.next, t.polls = until, true
	}
}

// skipped counts an attempt not made, since others stand before this caller, and reports whether another is allowed.
func (t *Tries) skipped() (more bool) {
	t.Attempts++
	t.Wait(false, 0)
	return t.mayGoOn()
}

// IsRetryable reports whether an attempt ended with err may be followed by a better one.
func IsRetryable(err error) bool {
	return errors.Is(err, engine.ErrTaken) || err == engine.ErrExpired || err == engine.ErrBusy || errors.Is(err, engine.ErrNoQuorum)
}
