// Package clock reads time as the protocol needs it: as the distance between
// two instants of one process, and nothing else.
//
// The wall clock is never used. It is set, stepped and slewed from outside, by
// hand and by NTP, and a step back would lengthen a lock that has already run
// out on its nodes. A reading here is therefore a [time.Duration] and not a
// [time.Time]: it cannot be printed as a date, sent to a node or compared with
// another machine's, and it cannot lose its monotonic part on the way, as a
// Time does in UTC, In or JSON.
//
// Time is a parameter: code that decides by time is given a [Clock], so that a
// test can replay it. [System] is the real one.
package clock

import "time"

// Clock reads a monotonic clock.
type Clock interface {
	// Now returns the time since an arbitrary epoch. Readings of one Clock
	// never go back; readings of two Clocks have nothing to do with each
	// other. It is safe for concurrent use, does not block and does not
	// allocate.
	Now() time.Duration
}
