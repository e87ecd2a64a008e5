package engine

import (
	"runtime"
	"time"
)

// aloneFor is how long a caller that is alone waits in the kernel for its own
// replies before it parks like everyone else; in that time nobody else can be
// the driver. It is not shorter because a timer that is due before the kernel's
// next tick has to be programmed into the hardware for each wait, and in a
// virtual machine that costs microseconds: with 300 us in its place a lone
// caller's median was 387 us instead of 330 us.
const aloneFor = 5 * time.Millisecond

// readAlone lets the caller of c, which holds the role, read its own replies,
// provided that nobody else waits for anything. Who comes meanwhile waits behind a
// closed gate as anybody would. Behind an open one, on a slow network, it wakes
// the caller, which sends what there is and leaves the rest to the reader.
//
// No newcomer can be missed: it pushes and then reads alone, and here alone is set
// before the queue is looked at.
func (e *Engine) readAlone(c *Call) {
	if e.depth.Load() != 1 || !e.fleet.CanBlock() {
		return
	}
	e.alone.Store(true)
	defer e.alone.Store(false)
	limit := min(aloneFor, c.Timeout)
	for left := limit; len(c.done) == 0 && left > 0 && c.ctx.Err() == nil; {
		if e.flush(); e.gate.isOpen.Load() && e.depth.Load() != 1 {
			return
		}
		e.fleet.Sweep(left)
		e.complete()
		left = limit - (e.clock.Now() - c.start)
	}
}

// read is the reader goroutine: it sleeps until replies arrive that somebody
// waits for and nobody reads.
func (e *Engine) read() {
	defer e.routines.Done()
	turn := func() {
		e.armed = false
		e.fleet.Sweep(0)
		woken := e.settled.n
		e.complete()
		if woken > 0 && e.depth.Load() > 0 || woken > 1 {
			e.gather(woken)
		}
	}
	for e.fleet.Wait() {
		e.role.Lock()
		e.turn(turn)
	}
}

// maxYields bounds gather: on a machine that is busy with other things, a yield
// can take long.
const maxYields = 8

// gather lets the callers that were just completed run before the next batch is
// written, since most of them submit again at once: to go on with those that
// happen to have been waiting would split the callers into two camps, each of
// which waits for the other's round trip. The role stays ours, so what they
// submit collects in the queue.
func (e *Engine) gather(woken int) {
	before := e.queue.size.Load()
	goal := before + int64(woken)
	for i := range maxYields {
		runtime.Gosched()
		now := e.queue.size.Load()
		if now >= goal || i > 0 && now == before {
			return // all are back, or no more come
		}
		before = now
	}
}
