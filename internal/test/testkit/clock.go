package testkit

import (
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// Clock is a clock.Clock that moves only by Advance. It is safe for concurrent use. The zero value
// reads zero; it must not be copied.
type Clock struct {
	now atomic.Int64 // nanoseconds since the epoch
}

// Now returns the sum of all advances so far.
func (c *Clock) Now() clock.Instant { return clock.Instant(c.now.Load()) }

// Advance moves the clock forward by d. It panics if d is negative: no monotonic clock goes back,
// so a test with such a need tests something impossible.
func (c *Clock) Advance(d time.Duration) {
	if d < 0 {
		panic("clock: a monotonic clock does not go back")
	}
	c.now.Add(int64(d))
}
