// Package renewal decides when a lock that is kept alive is renewed. It is pure: instants
// and lengths of time, no clock, timer or socket.
//
// The instants are readings of one monotonic clock.
package renewal

import "time"

// MinTTL is the least TTL that leaves time to renew a lock: a third of it for the nodes
// to answer, and the same for a second try.
const MinTTL = 30 * time.Millisecond

// Renewals travel together if they are due at the same instant, so instants are rounded
// down to a multiple of a tick: a 64th of the TTL, within these bounds.
const (
	minTick = time.Millisecond
	maxTick = 10 * time.Millisecond
)

// Next is when to renew a lock that was given its TTL by what began at an instant: a
// third of the TTL later, which leaves two thirds for tries that fail.
func Next(began, ttl time.Duration) time.Duration {
	tick := max(minTick, min(ttl/64, maxTick))
	next := began + ttl/3
	return max(next-next%tick, began)
}

// Bounds of the pause after a renewal that has failed.
const (
	minPause = time.Millisecond
	maxPause = time.Second
)

// Retry is when to try again a renewal that has failed, where validity ends at until. The
// pause is an eighth to a quarter of what is left, so that tries follow each other more
// closely towards the end, and is random, so that clients that failed together do not
// come back together; random is from 0 up to but without 1.
func Retry(now, until time.Duration, random float64) time.Duration {
	most := min((until-now)/4, maxPause)
	return now + max(minPause, most/2+time.Duration(random*float64(most/2)))
}
