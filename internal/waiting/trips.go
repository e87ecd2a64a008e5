package waiting

import (
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
func (t *trips) know(nodes quorum.Set) bool {
	for node := range nodes.All() {
		if n := &t[node]; n.n < len(n.last) {
			return false
		}
	}
	return true
}

// slow is the slow nodes among those of nodes, and those whose last round trip alone is
// slow. One that was slow before is so until it takes less than half of what makes it slow.
func (t *trips) slow(before, nodes quorum.Set) (slow, late quorum.Set) {
	all := make([]time.Duration, 0, quorum.MaxNodes)
	for node := range t {
		if d := t.least(node); d > 0 && nodes.Has(node) {
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
		if before.Has(node) {
			d *= 2
		}
		switch {
		case !nodes.Has(node):
		case d > bound:
			slow.Add(node)
		case d > 0 && n.last[(n.n-1)%len(n.last)] > bound:
			late.Add(node)
		}
	}
	return slow, late
}
