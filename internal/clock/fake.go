package clock

import (
	"sync/atomic"
	"time"
)

// Fake is a Clock that moves only when it is told to. It is safe for concurrent
// use. Use NewFake; the zero value works too, but must not be copied.
type Fake struct {
	now atomic.Int64 // nanoseconds since the epoch
}

// NewFake returns a clock that reads zero.
func NewFake() *Fake { return new(Fake) }

// Now returns the sum of all advances so far.
func (f *Fake) Now() time.Duration { return time.Duration(f.now.Load()) }

// Advance moves the clock forward by d. It panics if d is negative: no
// monotonic clock goes back, and a test that needs one to is testing something
// that cannot happen.
func (f *Fake) Advance(d time.Duration) {
	if d < 0 {
		panic("clock: a monotonic clock does not go back")
	}
	f.now.Add(int64(d))
}
