package engine

import (
	"sync/atomic"
	"time"
)

// How many batches may be on the wire depends on the round trip. On a fast
// network one is best: what is submitted while it is out becomes the next, and
// the larger the batches, the less each operation costs. On a slow one that
// would make an operation that just missed a batch wait for a whole round trip,
// and leave the wire idle; so another batch is let out for every roundPerBatch
// that the round trip lasts.
const (
	roundPerBatch = 500 * time.Microsecond
	maxWindow     = 32
	probeOps      = 8
	probeEvery    = 100 // round trips, while there is more than one batch out
)

// gate bounds how many batches may be on the wire unanswered. Its fields are
// the driver's; isOpen is read by every submitter.
//
// A submitter appends to the queue and then reads isOpen; a driver opens the
// gate and then reads the queue. Both are sequentially consistent, so whichever
// comes second sees what the other wrote, and no operation is left waiting
// behind an open gate.
type gate struct {
	window int // batches
	inside int
	round  time.Duration // a quorum's round trip when little else goes on; 0 is unknown
	probed time.Duration // when it was last measured
	due    bool          // measure it again: the next batch is small and goes alone
	isOpen atomic.Bool
}

func (g *gate) init() {
	g.window = 1
	g.isOpen.Store(true)
}

// limit is how many operations the next batch may carry.
func (g *gate) limit() int {
	if g.due {
		return probeOps
	}
	return maxBatchOps
}

// enter counts b as on the wire. A small batch that has the wire to itself
// measures the round trip: in a large one it would be the nodes' work. Under
// load there are none, and a window that one slow answer has opened too wide
// would stay open; so every probeEvery round trips one is made.
func (g *gate) enter(b *batch) {
	if b.probe = g.inside == 0 && len(b.rounds) <= probeOps; b.probe {
		g.probed, g.due = b.sentAt, false
	} else if g.window > 1 && b.sentAt-g.probed > probeEvery*g.round {
		g.due = true
	}
	g.inside++
	g.set()
}

// leave counts b as no longer in the window.
func (g *gate) leave(b *batch) {
	g.inside--
	if b.probe && b.heard >= b.engine.quorum {
		g.measure(b.engine.clock.Now() - b.sentAt)
	}
	g.set()
}

// measure follows the shortest round trips: down at once, up slowly, because
// what makes one longer is most often not the network.
func (g *gate) measure(round time.Duration) {
	if g.round == 0 || round < g.round {
		g.round = round
	} else {
		g.round += (round - g.round) / 32
	}
	g.window = 1 + min(int(g.round/roundPerBatch), maxWindow-1)
}

func (g *gate) set() {
	window := g.window
	if g.due {
		window = 1 // the wire must be empty
	}
	if open := g.inside < window; open != g.isOpen.Load() {
		g.isOpen.Store(open)
	}
}
