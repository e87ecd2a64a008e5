package contention

import (
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/quorum"
)

// failing is the nodes that have failed commands of one lock although they are up. Each is left out
// for a while, and for longer after each further failure.
type failing []failed

type failed struct {
	node  int
	until clock.Instant // when it is asked again
	pause time.Duration // how long it was left out
}

// How long a node is left out, at first and at most. After the longest time all processes use the
// first node in the lock's order again, once it is well.
const (
	failedFor  = time.Second
	failedMost = 8 * time.Second
)

// add notes that a node has failed.
func (f *failing) add(now clock.Instant, node int) {
	i := slices.IndexFunc(*f, func(one failed) bool { return one.node == node })
	if i < 0 {
		i, *f = len(*f), append(*f, failed{node: node})
	}
	one := &(*f)[i]
	if one.pause = min(2*one.pause, failedMost); one.pause == 0 || now > one.until.Add(failedMost) { // it was well since
		one.pause = failedFor
	}
	one.until = now.Add(one.pause)
}

// at is the nodes left out at an instant, and when the first of them is asked again.
func (f failing) at(now clock.Instant) (out quorum.Set, until clock.Instant) {
	until = clock.Never
	for _, one := range f {
		if now < one.until {
			out.Add(one.node)
			until = min(until, one.until)
		}
	}
	return out, until
}
