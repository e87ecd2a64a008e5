// Package clock reads time for the protocol: as the distance between two instants of one process.
//
// The wall clock is never used: it is set, stepped and slewed by hand and by NTP, and a step back
// would lengthen a lock already expired on its nodes. So a reading is a [time.Duration], not a
// [time.Time]: it cannot be printed as a date, sent to a node, compared with another machine's, or
// lose its monotonic part, as a Time does in UTC, In or JSON.
//
// Code that decides by time gets a [Clock], so tests can replay it. [System] is the real one.
package clock

import "time"

// Never is an instant after all others.
const Never = time.Duration(1<<63 - 1)

// Clock reads a monotonic clock.
type Clock interface {
	// Now returns the time since an arbitrary epoch. Readings of one Clock never go back;
	// readings of two Clocks cannot be compared. It is safe for concurrent use, does not
	// block and does not allocate.
	Now() time.Duration
}
