package engine

import (
	"math"
	"sync/atomic"
	"time"
)

// The number of batches that may be in flight depends on the round trip. On a fast
// network one is best: operations submitted meanwhile become the next batch, and the
// larger a batch, the less each operation costs. On a slow network an operation that
// just missed a batch would wait for a whole round trip while the wire is idle. So
// another batch is allowed for every roundPerBatch of the round trip.
const (
	roundPerBatch = 500 * time.Microsecond
	maxWindow     = 32
	probeOps      = 8
	probeEvery    = 100 // round trips, while there is more than one batch out
)

// window is the in-flight window: it bounds how many batches may be on the wire
// unanswered. Its fields are the driver's; isOpen is read by every submitter.
//
// A submitter appends to the queue and then reads isOpen; a driver opens the
// window and then reads the queue. Both are sequentially consistent, so the second
// sees what the first wrote, and no operation is left waiting while the window is open.
type window struct {
	size   int // batches
	inside int
	bound  int           // operations, and so replies that a node owes: half of what cuts it off
	ops    int           // inside
	round  time.Duration // a quorum's round trip when little else goes on; 0 is unknown
	probed time.Duration // when it was last measured
	due    bool          // measure it again: the next batch is small and goes alone
	isOpen atomic.Bool
}

func (w *window) init(maxInFlight int) {
	w.size, w.bound = 1, math.MaxInt
	if maxInFlight > 0 {
		w.bound = max(1, maxInFlight/2)
	}
	w.isOpen.Store(true)
}

// limit is how many operations the next batch may carry.
func (w *window) limit() int {
	if w.due {
		return probeOps
	}
	return min(maxBatchOps, w.bound-w.ops)
}

// enter counts b as on the wire. A small batch that is alone on the wire measures the
// round trip; a large one would measure the nodes' work. Under load there are no small
// batches, and a window that one slow answer has opened too wide would stay open. So
// every probeEvery round trips a small batch is made.
func (w *window) enter(b *batch) {
	if b.probe = w.inside == 0 && len(b.rounds) <= probeOps; b.probe {
		w.probed, w.due = b.sentAt, false
	} else if w.size > 1 && b.sentAt-w.probed > probeEvery*w.round {
		w.due = true
	}
	w.inside++
	w.ops += len(b.rounds)
	w.set()
}

// leave counts b as no longer in the window.
func (w *window) leave(b *batch) {
	w.inside--
	w.ops -= len(b.rounds)
	if b.probe && b.engine.quorum.IsQuorum(b.done&^b.gone) {
		w.measure(b.engine.clock.Now() - b.sentAt)
	}
	w.set()
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

func (w *window) set() {
	size := w.size
	if w.due {
		size = 1 // the wire must be empty
	}
	if open := w.inside < size && w.ops < w.bound; open != w.isOpen.Load() {
		w.isOpen.Store(open)
	}
}
