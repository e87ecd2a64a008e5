package waiting

import (
	"math/bits"
	"slices"
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// trips is the last round trips of each node. Processes queue up on one node, and each turn
// takes some of its round trips, so it must not be one that is slower than the others.
type trips [quorum.MaxNodes]struct {
	last [3]time.Duration
	n    int
}

// A node is slow if it takes slowTimes as long as the median of the nodes, and slowBy more:
// on a busy machine any round trip may take some milliseconds.
const (
	slowTimes = 4
	slowBy    = 3 * time.Millisecond
)

// add notes a round trip.
func (t *trips) add(node int, d time.Duration) {
	n := &t[node]
	n.last[n.n%len(n.last)] = d
	n.n++
}

// least is the least of the last round trips of a node, so that one that was late by chance
// counts for nothing. It is 0 before there are enough of them.
func (t *trips) least(node int) time.Duration {
	if n := &t[node]; n.n >= len(n.last) {
		return slices.Min(n.last[:])
	}
	return 0
}

// know reports whether there are enough round trips of each of the nodes.
func (t *trips) know(nodes uint64) bool {
	for ; nodes != 0; nodes &= nodes - 1 {
		if n := &t[bits.TrailingZeros64(nodes)]; n.n < len(n.last) {
			return false
		}
	}
	return true
}

// slow is the slow nodes among those of nodes, a bit each, and those whose last round trip alone is
// slow. One that was slow before is so until it takes less than half of what makes it slow.
func (t *trips) slow(before, nodes uint64) (slow, late uint64) {
	all := make([]time.Duration, 0, quorum.MaxNodes)
	for node := range t {
		if d := t.least(node); d > 0 && nodes&bit(node) != 0 {
			all = append(all, d)
		}
	}
	if len(all) < 2 {
		return 0, 0
	}
	slices.Sort(all)
	bound := slowTimes*all[(len(all)-1)/2] + slowBy
	for node := range t {
		d, n := t.least(node), &t[node]
		if before&bit(node) != 0 {
			d *= 2
		}
		switch {
		case nodes&bit(node) == 0:
		case d > bound:
			slow |= bit(node)
		case d > 0 && n.last[(n.n-1)%len(n.last)] > bound:
			late |= bit(node)
		}
	}
	return slow, late
}
