package quorum

import (
	"math"
	"time"
)

// The allowance for clocks of different rates. These are part of the protocol, not tuning: the algorithm's text asks
// for "just a few milliseconds in order to compensate for clock drift between processes". Its first implementation, in
// Ruby, settled on these figures, and its ports share them.
const (
	// driftDivisor: one hundredth of the TTL, for rates 1 % apart.
	driftDivisor = 100
	// driftFloor: 1 ms for the resolution of Redis' expiry and 1 ms as the
	// least drift of a short TTL.
	driftFloor = 2 * time.Millisecond
)

// Drift returns the allowance for clocks of different rates, to be subtracted from a TTL: ttl/100 + 2 ms. For a ttl
// below zero it is 2 ms.
func Drift(ttl time.Duration) time.Duration {
	return max(ttl, 0)/driftDivisor + driftFloor
}

// Until returns the instant at which the validity of a lock ends:
// start + ttl - Drift(ttl).
//
// start is the reading taken before the first byte of the round was sent. It is not the instant of the first grant: a
// node's TTL starts when the node applies the command, and this moment is known only as: not before start.
//
// ttl - Drift(ttl), and the sum with start, each saturate at the ends of the range of a Duration.
//
// Source: "The Redlock Algorithm", steps 1, 3 and 4, and "Safety Arguments".
func Until(start, ttl time.Duration) time.Duration {
	return add(start, add(ttl, -Drift(ttl)))
}

// add returns a + b, held at the nearest end of the range when the sum is
// outside it.
func add(a, b time.Duration) time.Duration {
	sum := a + b
	switch {
	case b > 0 && sum < a:
		return math.MaxInt64
	case b < 0 && sum > a:
		return math.MinInt64
	}
	return sum
}
