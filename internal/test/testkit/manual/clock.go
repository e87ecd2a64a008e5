// Package manual has a clock that moves by hand.
package manual

import (
	"sync/atomic"
	"time"
)

// Clock is a clock.Clock that moves only when it is advanced. It is safe for concurrent
// use. The zero value reads zero; it must not be copied.
type Clock struct {
	now atomic.Int64 // nanoseconds since the epoch
}

// Now returns the sum of all advances so far.
func (c *Clock) Now() time.Duration { return time.Duration(c.now.Load()) }

// Advance moves the clock forward by d. It panics if d is negative: no
// monotonic clock goes back, and a test that needs one to is testing something
// that cannot happen.
func (c *Clock) Advance(d time.Duration) {
	if d < 0 {
		panic("clock: a monotonic clock does not go back")
	}
	c.now.Add(int64(d))
}
