package engine

const (
	keepBuffers = 2 << 20 // bytes of buffers kept for batches to come

	slabBytes  = 512 // of commands, in each batch of a slab
	slabRounds = 4   // in each
)

// slab is how many batches are made at once. Tests that count them set it to 1.
var slab = 32

// batch returns an empty one.
func (e *Engine) batch() *batch {
	if n := len(e.free); n > 0 {
		b := e.free[n-1]
		e.free = e.free[:n-1]
		e.kept -= b.size()
		b.reset()
		return b
	}
	e.makeBatches()
	return e.batch()
}

// makeBatches adds to the free batches. There are as many as the slowest node
// lags behind, and with little load each carries one operation; so they are made
// a slab at a time, or every new record of slowness would show as allocations.
func (e *Engine) makeBatches() {
	batches := make([]batch, slab)
	bytes := make([]byte, slab*slabBytes)
	rounds := make([]round, slab*slabRounds)
	groups := make([]group, slab*slabRounds)
	spans := make([]span, slab*slabRounds)
	causes := make([]error, slab*e.nodes)
	for i := range batches {
		b := &batches[i]
		b.engine = e
		b.first.batch, b.first.Owner = b, &b.first
		b.first.Buf = bytes[i*slabBytes : i*slabBytes : (i+1)*slabBytes]
		b.first.spans = spans[i*slabRounds : i*slabRounds : (i+1)*slabRounds]
		b.rounds = rounds[i*slabRounds : i*slabRounds : (i+1)*slabRounds]
		b.groups = groups[i*slabRounds : i*slabRounds : (i+1)*slabRounds]
		b.cause = causes[i*e.nodes : (i+1)*e.nodes : (i+1)*e.nodes]
		e.keep(b)
	}
}

func (e *Engine) keep(b *batch) {
	e.kept += b.size()
	e.free = append(e.free, b)
}

// recycle takes back a batch that nobody needs any more.
func (e *Engine) recycle(b *batch) {
	e.settle()
	if b.extends {
		e.extending.remove(b)
	}
	if b.handsOff || e.kept+b.size() > keepBuffers {
		return
	}
	// Rounds and causes stay: operations settled in this sweep still read them.
	e.keep(b)
}

// settle counts one thing as settled by every node.
func (e *Engine) settle() {
	if e.unsettled--; e.unsettled == 0 && e.closing.Load() {
		select {
		case e.quiet <- struct{}{}:
		default:
		}
	}
}

// size is the bytes of its buffers.
func (b *batch) size() int {
	n := cap(b.first.Buf)
	for _, w := range b.others {
		n += cap(w.Buf)
	}
	return n
}

// reset empties a batch for its next use.
func (b *batch) reset() {
	b.rounds, b.groups = b.rounds[:0], b.groups[:0]
	clear(b.cause)
	clear(b.failures)
	b.failures = b.failures[:0]
	b.heard, b.failed, b.replied, b.passed, b.extends = 0, 0, false, false, false
	b.soonest, b.latest, b.longest = never, 0, 0
}
