package contention

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/quorum"
)

// failing holds the nodes that are up but have failed commands of one lock. Each is left out for a while, and for
// longer after each further failure.
type failing map[int]failed

type failed struct {
	until clock.Instant // when it is asked again
	pause time.Duration // how long it was left out
}

// How long a node is left out, at first and at most. After the longest time all processes use the
// first node in the lock's order again, once it is well.
const (
	failedFor  = time.Second
	failedMost = 8 * time.Second
)

// add notes a failure of a node.
func (f failing) add(now clock.Instant, node int) {
	pause := min(2*f[node].pause, failedMost)
	if pause == 0 || now > f[node].until.Add(failedMost) { // it has been well since
		pause = failedFor
	}
	f[node] = failed{now.Add(pause), pause}
}

// at returns the nodes left out at an instant, and when the first of them is asked again.
func (f failing) at(now clock.Instant) (out quorum.Set, until clock.Instant) {
	until = clock.Never
	for node, one := range f {
		if now < one.until {
			out.Add(node)
			until = min(until, one.until)
		}
	}
	return out, until
}
