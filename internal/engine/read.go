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
// provided that no other operation is under way. An operation that is submitted
// meanwhile waits behind a closed window as always. Behind an open one, on a slow
// network, its submitter wakes the caller, which sends what there is and leaves
// the rest to the reader.
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
	for left := limit; len(c.done) == 0 && left > 0 && !isClosed(c.ended); {
		if e.flush(); e.gate.isOpen.Load() && e.depth.Load() != 1 {
			return
		}
		e.fleet.Sweep(left)
		e.complete()
		left = limit - (e.clock.Now() - c.start)
	}
}

// read is the reader goroutine: it sleeps until replies arrive that a caller
// waits for, or until a driver rings because callbacks or operations wait.
func (e *Engine) read(number uint64) {
	defer e.endReader(number)
	for e.fleet.Wait() {
		if !e.receive(number, gather) {
			return
		}
	}
	e.role.Lock() // Close is at work until it gives the role up
	e.role.Unlock()
	e.callBack(number)
}

// endReader counts the reader as ended, unless another has taken its place.
func (e *Engine) endReader(number uint64) {
	if e.callbacks.isReader(number) {
		e.routines.Done()
	}
}

// receive reads what has arrived, hands the results to their callers and sends
// what those have submitted by then. It returns false if the reader was replaced.
//
// The role is given up while callers run, and collecting is set instead: they
// queue, and one batch carries what they submit. Were each to drive, the first
// would send its own operation alone, and the others would wait for that round
// trip. No operation is left waiting: a submitter pushes and then reads
// collecting; the reader clears collecting and then reads the queue. If a callback
// does not return, the watchdog clears it.
func (e *Engine) receive(number uint64, gather func(q *queue, calls int)) bool {
	e.role.Lock()
	e.armed = false
	e.fleet.Sweep(0)
	calls, alone := e.complete(), e.depth.Load() == 0
	if calls > 0 && !(calls == 1 && alone) || e.callbacks.waiting.Load() > 0 {
		e.callbacks.collecting.Store(true)
		e.role.Unlock()
		if !e.callBack(number) {
			return false
		}
		if calls > 0 {
			gather(&e.queue, calls)
		}
		e.callbacks.collecting.Store(false)
		e.role.Lock()
	}
	e.turn(func() {})
	return true
}

// maxYields bounds gather: on a machine that is busy with other things, a yield
// can take long.
const maxYields = 8

// gather lets the callers that were just completed run before the next batch is
// written, since most of them submit again at once: to go on with those that
// happen to have been waiting would split the callers into two camps, each of
// which waits for the other's round trip.
func gather(q *queue, calls int) {
	before := q.size.Load()
	goal := before + int64(calls)
	for i := range maxYields {
		runtime.Gosched()
		now := q.size.Load()
		if now >= goal || i > 0 && now == before {
			return // all are back, or no more come
		}
		before = now
	}
}
