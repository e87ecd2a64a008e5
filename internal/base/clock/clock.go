// Package clock reads time for the protocol: as the distance between two instants of one process.
//
// The wall clock is never used: it is set, stepped and slewed by hand and by NTP, and a step back
// would lengthen a lock already expired on its nodes. So a reading is an [Instant], not a
// [time.Time]: it cannot be printed as a date, sent to a node, compared with another machine's, or
// lose its monotonic part, as a Time does in UTC, In or JSON.
//
// Code that decides by time gets a [Clock], so tests can replay it. [System] is the real one.
package clock

import "time"

// Instant is a reading of one [Clock]. A span is a [time.Duration], so the compiler distinguishes the end of a validity
// from a TTL.
type Instant time.Duration

// Never is the instant after all others, and Forever the longest span.
const (
	Never   = Instant(Forever)
	Forever = time.Duration(1<<63 - 1)
)

// Add is the instant d later.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub is the span from another instant to i.
func (i Instant) Sub(from Instant) time.Duration { return time.Duration(i - from) }

// Truncate is the last multiple of d until i.
func (i Instant) Truncate(d time.Duration) Instant { return Instant(time.Duration(i).Truncate(d)) }

// Clock reads a monotonic clock.
type Clock interface {
	// Now returns the instant, counted from an arbitrary epoch. Readings of one Clock never go back;
	// readings of two Clocks cannot be compared. It is safe for concurrent use, does not
	// block and does not allocate.
	Now() Instant
}
