package waiting

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// Bell wakes the goroutine of a caller, in one line or several.
type Bell struct {
	rung  chan struct{} // holds one
	timer *time.Timer
	due   clock.Instant // when the timer rings, at the latest; never: it is not set
}

// NewBell returns the bell of a caller for several keys.
func NewBell() *Bell {
	return &Bell{rung: make(chan struct{}, 1), timer: time.NewTimer(time.Hour), due: clock.Never}
}

func (b *Bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default: // it will look
	}
}

// sleep waits until the bell rings, until an instant, a pause from now, or until the caller gives up.
func (b *Bell) sleep(pause time.Duration, until clock.Instant, done, ending <-chan struct{}) {
	if pause <= 0 {
		return
	}
	if b.due > until { // else it is left alone: most callers are woken long before
		b.timer.Reset(min(pause, time.Hour))
		b.due = until
	}
	select {
	case <-b.rung:
	case <-b.timer.C:
		b.due = clock.Never
	case <-done:
	case <-ending:
	}
}
