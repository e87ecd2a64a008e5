package engine

import "sync/atomic"

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
	isOpen atomic.Bool
}

func (g *gate) init(window int) {
	g.window = window
	g.isOpen.Store(true)
}

func (g *gate) enter(*batch) {
	g.inside++
	g.set()
}

func (g *gate) leave(*batch) {
	g.inside--
	g.set()
}

func (g *gate) set() {
	if open := g.inside < g.window; open != g.isOpen.Load() {
		g.isOpen.Store(open)
	}
}
