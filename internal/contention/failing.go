package contention

import (
	"time"

	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/quorum"
)

// failing is the nodes that have failed the commands of one lock, although they are up: each is left out for a
// while, and for longer each time that it fails again.
type failing struct {
	nodes quorum.Set      // a bit each
	until []time.Duration // when each is asked again, by node
	times []uint8         // how often in a row each has failed
}

// How long a node is left out, at first and at most. After the longest time all processes use the first node in
// the lock's order again, once it is well.
const (
	failedFor  = time.Second
	failedMost = 8 * time.Second
)

// add notes that a node has failed.
func (f *failing) add(now time.Duration, node int) {
	for len(f.until) <= node {
		f.until, f.times = append(f.until, 0), append(f.times, 0)
	}
	if now > f.until[node]+failedMost { // it was well since
		f.times[node] = 0
	}
	f.until[node] = now + min(failedFor<<f.times[node], failedMost)
	f.times[node] = min(f.times[node]+1, 8)
	f.nodes.Add(node)
}

// recently is the nodes that are left out, or were a short while ago: they may fail again.
func (f *failing) recently(now time.Duration) (nodes quorum.Set) {
	for node, at := range f.until {
		if f.times[node] > 0 && now < at+failedMost {
			nodes.Add(node)
		}
	}
	return nodes
}

// at is the nodes that are left out now, and when the first of them is asked again.
func (f *failing) at(now time.Duration) (out quorum.Set, until time.Duration) {
	if f.nodes == 0 {
		return 0, clock.Never
	}
	until = clock.Never
	for node, at := range f.until {
		if !f.nodes.Has(node) {
			continue
		}
		if now >= at {
			f.nodes.Remove(node)
			continue
		}
		out, until = out|quorum.Only(node), min(until, at)
	}
	return out, until
}
