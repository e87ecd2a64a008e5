// Package renewal decides when a lock kept alive is renewed. It is pure: instants and lengths of
// time, no clock, timer or socket.
//
// The instants are readings of one monotonic clock.
package renewal

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// MinTTL is the least TTL with time for renewals: a third of it for the nodes to answer, and another third for a second
// try.
const MinTTL = 30 * time.Millisecond

// Renewals due at the same instant travel together, so instants are rounded down to a multiple of a
// tick: a 64th of the TTL, within these bounds.
const (
	minTick = time.Millisecond
	maxTick = 10 * time.Millisecond
)

// Next is the instant to renew a lock with a TTL counted from began: a third of the TTL later. Two thirds are left for
// tries that fail.
func Next(began clock.Instant, ttl time.Duration) clock.Instant {
	tick := max(minTick, min(ttl/64, maxTick))
	return max(began.Add(ttl/3).Truncate(tick), began)
}

// Bounds of the pause after a failed renewal.
const (
	minPause = time.Millisecond
	maxPause = time.Second
)

// Retry is the instant of the next try after a failed renewal, with validity until an instant. The pause is random, an
// eighth to a quarter of the time left: tries come closer together towards the end, and clients that failed together do
// not come back together. random is in [0, 1).
func Retry(now, until clock.Instant, random float64) clock.Instant {
	most := min(until.Sub(now)/4, maxPause)
	return now.Add(max(minPause, most/2+time.Duration(random*float64(most/2))))
}
