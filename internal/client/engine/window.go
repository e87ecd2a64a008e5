package engine

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// Bounds of one batch. Larger ones gain nothing: by then a system call costs little next to its contents.
const (
	maxBatchOps  = 1024
	maxBatchKeys = 256 << 10 // bytes of keys
)

// The number of batches in flight depends on the round trip. On a fast network one is best: operations submitted
// meanwhile become the next batch, and the larger a batch, the less each operation costs. On a slow network an
// operation that just missed a batch would wait for a whole round trip while the wire is idle. So another batch is
// allowed for every roundPerBatch of the round trip.
const (
	roundPerBatch = 500 * time.Microsecond
	maxWindow     = 32
	probeOps      = 8
	probeEvery    = 100 // round trips, while there is more than one batch out
)

// The number of operations in flight depends on how fast a quorum answers. A sent operation waits at the nodes for
// the earlier ones while its timeout runs; in the queue none runs. So a burst is sent at the pace of the answers, and
// is late, not lost. The bound begins with one batch, so as not to divide the only one in flight, and goes down to
// leastBound at most: nodes of 100 us for each operation answer as many in half of the default timeout.
const leastBound = 256

// window is the in-flight window: it bounds the unanswered batches on the wire, and their operations. Its fields are
// the driver's; isOpen is read by every submitter.
//
// A submitter appends to the queue and then reads isOpen; a driver opens the
// window and then reads the queue. Both are sequentially consistent, so the second
// sees what the first wrote, and no operation is left waiting while the window is open.
type window struct {
	size   int // batches
	inside int
	bound  int           // operations
	most   int           // bound at most: half of the replies a node may owe
	ops    int           // inside
	round  time.Duration // a quorum's round trip when little else goes on; 0 is unknown
	probed clock.Instant // when it was last measured
	due    bool          // measure it again: the next batch is small and goes alone
	extra  int           // batches beyond size
	isOpen atomic.Bool
}

// passage is one batch in the window.
type passage struct {
	ops     int // of the batch
	ahead   int // in the window when it was sent, with its own
	sentAt  clock.Instant
	soonest time.Duration // shortest timeout
	probe   bool          // measures the round trip
	replied bool          // a node has answered something
}

func (w *window) init(maxInFlight int) {
	w.size, w.most = 1, math.MaxInt
	if maxInFlight > 0 {
		w.most = max(1, maxInFlight/2)
	}
	w.bound = min(maxBatchOps, w.most)
	w.isOpen.Store(true)
}

// limit is how many operations the next batch may carry.
func (w *window) limit() int {
	if w.due {
		return probeOps
	}
	return min(maxBatchOps, w.bound-w.ops)
}

// enter counts a batch as on the wire. A small batch alone on the wire measures the round trip; a large one would
// measure the nodes' work. Under load there are no small batches, and a window opened too wide by one slow answer
// would stay open. So every probeEvery round trips a small batch is made.
func (w *window) enter(s *passage) {
	s.probe = w.inside == 0 && s.ops <= probeOps
	if s.probe {
		w.probed, w.due = s.sentAt, false
	} else if w.size > 1 && s.sentAt.Sub(w.probed) > probeEvery*w.round {
		w.due = true
	}
	w.inside++
	w.ops += s.ops
	s.ahead = w.ops
	w.set()
}

// leave counts a batch as no longer in the window; answered, by a quorum.
func (w *window) leave(s *passage, now clock.Instant, answered bool) {
	w.inside--
	w.ops -= s.ops
	took := now.Sub(s.sentAt)
	if answered && s.probe {
		w.measure(took)
	}
	w.pace(s, took, answered)
	w.set()
}

// pace has bound follow the nodes of a quorum: it is what they work off in a quarter of the time left, the timeout less
// the round trip, in proportion to what the batch has shown. A batch lets the bound grow if it used more than half of
// it, by the operations answered at most: only use shows room for more. A batch lets it shrink if it needed more than
// half of the time left. Any other batch leaves it. Nodes that are silent or down show no pace.
func (w *window) pace(s *passage, took time.Duration, answered bool) {
	left := max(0, s.soonest-w.round)
	work := max(1, took-w.round)
	inTime := int(min(time.Duration(s.ahead)*(left/4)/work, math.MaxInt32))
	switch {
	case work > left/2 && s.replied:
		w.bound = max(min(w.bound, inTime), min(leastBound, w.most))
	case answered && s.ahead > w.bound/2:
		w.bound = min(max(w.bound, inTime), w.bound+s.ops, w.most)
	}
}

// measure follows the shortest round trips: down at once, and up slowly, because most
// long ones are not due to the network.
func (w *window) measure(round time.Duration) {
	if w.round == 0 || round < w.round {
		w.round = round
	} else {
		w.round += (round - w.round) / 32
	}
	w.size = 1 + min(int(w.round/roundPerBatch), maxWindow-1)
}

// more allows some batches beyond the size.
func (w *window) more(n int) {
	w.extra = n
	w.set()
}

func (w *window) set() {
	size := w.size
	if w.due {
		size = 1 // the wire must be empty
	}
	if open := w.inside < size+w.extra && w.ops < w.bound; open != w.isOpen.Load() {
		w.isOpen.Store(open)
	}
}
