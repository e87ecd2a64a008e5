package engine

import (
	"runtime"
	"time"
)

// aloneFor is how long a caller that is alone waits in the kernel for its own
// replies before it parks like everyone else. While it waits there it keeps a
// processor of the Go scheduler from other goroutines, so this is short: a few
// round trips of a fast network.
const aloneFor = 300 * time.Microsecond

// readAlone lets the caller of c, which holds the role, read its own replies,
// provided that nobody else waits for anything.
func (e *Engine) readAlone(c *Call) {
	if e.depth.Load() != 1 || !e.fleet.CanBlock() {
		return
	}
	for left := aloneFor; len(c.done) == 0 && left > 0 && c.ctx.Err() == nil; {
		e.fleet.Sweep(left)
		e.complete()
		e.flush()
		left = aloneFor - (e.clock.Now() - c.start)
	}
}

// read is the reader goroutine: it sleeps until replies arrive that somebody
// waits for and nobody reads.
func (e *Engine) read() {
	defer e.routines.Done()
	turn := func() {
		e.armed = false
		e.fleet.Sweep(0)
		waves := e.settled.n
		e.complete()
		if waves > 1 {
			e.gather()
		}
	}
	for e.fleet.Wait() {
		e.role.Lock()
		e.turn(turn)
	}
}

// gather lets the callers that were just completed run before the next batch is
// written, since many of them submit again at once. The role stays ours, so
// what they submit collects in the queue.
func (e *Engine) gather() {
	runtime.Gosched()
}
