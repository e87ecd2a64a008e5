package waiting

import (
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
)

// kind is some kind of callers.
type kind uint8

const (
	everyCaller kind = iota
	sharing
	exclusive
)

// report is the end of the last attempt for a key, as it concerns the other callers in its line.
type report struct {
	outcome  error         // nil: there was none
	concerns kind          // the callers for whom it is news
	ended    clock.Instant // when that attempt ended
	denied   clock.Instant // until when it counts as a denial
	held     clock.Instant // until when a holder in this process is known to have the lock
}

// failed notes the end of an attempt of one of its callers without the lock; shared: it wanted to share it. How a caller
// itself has ended it says nothing to the others, and neither does one that ended before the last known. A gate shows no
// holder, and denies no exclusive caller. A denial of an exclusive caller may be by holders that share the lock. It
// reports whether a holder has denied the attempt.
func (r *report) failed(at clock.Instant, err error, shared bool) (isDenial bool) {
	if !IsRetryable(err) || at < r.ended {
		return false
	}
	r.outcome, r.concerns, r.ended, r.denied = err, everyCaller, at, 0
	switch {
	case err == engine.ErrGated:
		r.concerns = sharing
	case err == engine.ErrTaken && !shared:
		r.concerns = exclusive
	}
	isDenial = err == engine.ErrTaken
	if isDenial {
		r.denied = at.Add(denialLasts)
	}
	return isDenial
}

// news is what is known to a caller who began then: when the last attempt ended, and how; nil: there was none. It is news only
// if it ended while the caller waited, or in the second before, and concerns callers of its kind. A denial before since says
// nothing, and neither does a holder of this process gone before.
func (r *report) news(now, began, since clock.Instant, shared bool) (at clock.Instant, err error) {
	switch {
	case now < r.held:
		return now, engine.ErrTaken
	case r.ended < began.Add(-denialLasts), r.concerns == exclusive && shared, r.concerns == sharing && !shared:
		return 0, nil
	case r.outcome == engine.ErrTaken && (r.ended < since || r.denied == 0 && r.ended < began):
		return 0, nil
	}
	return r.ended, r.outcome
}

// gone notes that the holder in this process has gone. It kept others out until now.
func (r *report) gone(now clock.Instant) {
	if now < r.held {
		r.ended = now
	}
	r.held = 0
}
