package waiting

import (
	"slices"
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// trips is the last round trips of each node, the latest first, or 0. Processes queue up on one node, and each turn
// takes some of its round trips, so it must not be slower than the others.
type trips [quorum.MaxNodes][3]time.Duration

// A node is slow if it takes slowTimes as long as the median of the nodes, and slowBy more:
// on a busy machine any round trip may take some milliseconds.
const (
	slowTimes = 4
	slowBy    = 3 * time.Millisecond
)

// add notes a round trip.
func (t *trips) add(node int, d time.Duration) {
	n := &t[node]
	n[0], n[1], n[2] = max(d, 1), n[0], n[1]
}

// slow is the slow nodes among nodes, by the least of their last round trips: one delay by chance counts for nothing.
// late is the nodes without three round trips yet, and those slow in the last one alone. A node that was slow before
// stays so until it takes less than half of the bound.
func (t *trips) slow(before, nodes quorum.Set) (slow, late quorum.Set) {
	var all []time.Duration
	for node := range nodes.All() {
		if d := slices.Min(t[node][:]); d > 0 {
			all = append(all, d)
		} else {
			late.Add(node)
		}
	}
	if len(all) < 2 {
		return 0, late
	}
	slices.Sort(all)
	bound := slowTimes*all[(len(all)-1)/2] + slowBy
	for node := range nodes.All() {
		d := slices.Min(t[node][:])
		if before.Has(node) {
			d *= 2
		}
		if d > bound {
			slow.Add(node)
		} else if t[node][0] > bound {
			late.Add(node)
		}
	}
	return slow, late
}
