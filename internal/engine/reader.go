package engine

import (
	"runtime"
	"time"
)

// read is the reader goroutine: it sleeps until replies arrive that a caller
// waits for, or until a driver hands over to it.
func (e *Engine) read() {
	defer e.routines.Done()
	for e.fleet.Wait() {
		e.receive(e.yield)
	}
}

// receive reads what has arrived, completes calls, and sends what their callers have
// submitted by then. The driver lock is given up while callers run. Operations that
// callbacks submit are sent by the goroutine of callbacks.
func (e *Engine) receive(yield func(calls int)) {
	e.driver.Lock()
	e.armed = false
	e.fleet.Sweep(0)
	calls := e.complete()
	if calls > 1 || calls == 1 && e.depth.Load() > 0 {
		e.collectCalls.Store(int64(e.clock.Now() + collectTime(calls)))
		e.driver.Unlock()
		if e.callbacks.waiting.Load() > 0 {
			e.callbacks.wake()
		}
		yield(calls)
		e.collectCalls.Store(0)
		e.driver.Lock()
	} else if e.clock.Now() < time.Duration(e.collectOps.Load()) && e.callbacks.waiting.Load() > 0 {
		e.unlock(false)
		return
	}
	e.turn(func() {})
}

// Bounds of yield. If other goroutines compute, a yield lasts until the scheduler
// preempts one of them, 10 ms as a rule. After a slow yield some batches go without.
const (
	maxYields  = 8
	slowYield  = 5 * time.Millisecond
	yieldPause = 128 // batches
)

// yield lets the callers that were just completed run before the next batch is
// written, since most of them submit again at once. Without it, a batch with only those
// that already waited would go out, and the callers would split into two camps, each
// waiting for the other's round trip.
func (e *Engine) yield(calls int) {
	if e.unyielding > 0 {
		e.unyielding--
		return
	}
	started := e.clock.Now()
	before := e.queue.size.Load()
	goal := before + int64(calls)
	for i := range maxYields {
		runtime.Gosched()
		now := e.queue.size.Load()
		if now >= goal || i > 0 && now == before {
			break // all are back, or no more come
		}
		before = now
	}
	if e.clock.Now()-started > slowYield {
		e.unyielding = yieldPause
	}
}
