package engine

import (
	"runtime"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// read is the reader goroutine: it sleeps until replies for a waiting caller arrive, or until a driver hands over to
// it.
func (d *driver) read() {
	defer d.routines.Done()
	for d.nodes.Wait() {
		d.receive(d.yield)
	}
}

// receive reads what has arrived, completes calls, and sends what their callers have submitted by then. The driver
// lock is given up while callers run. Operations of callbacks are sent by the goroutine of callbacks.
func (d *driver) receive(yield func(calls int)) {
	d.lock.Lock()
	d.armed, d.armedLate = false, false
	d.nodes.Sweep(0)
	calls := d.ledger.complete()
	if calls > 1 || calls == 1 && d.queue.depth.Load() > 0 {
		d.lone.Store(false)
		d.collectCalls.Store(int64(d.nodes.clock.Now().Add(collectTime(calls))))
		d.lock.Unlock()
		if d.callbacks.waiting.Load() > 0 {
			d.callbacks.wake()
		}
		yield(calls)
		d.collectCalls.Store(0)
		d.lock.Lock()
	} else if d.nodes.clock.Now() < clock.Instant(d.callbacks.collects.Load()) && d.callbacks.waiting.Load() > 0 {
		d.unlock(false)
		return
	}
	d.turn(func() {})
}

// Bounds of yield. If other goroutines compute, a yield lasts until the scheduler
// preempts one of them, 10 ms as a rule. After a slow yield some batches go without.
const (
	maxYields  = 8
	slowYield  = 5 * time.Millisecond
	yieldPause = 128 // batches
)

// yield lets the callers just completed run before the next batch is written, since most of them submit again at
// once. Without it, a batch with only the earlier operations would go out, and the callers would split into two
// camps, each waiting for the other's round trip.
func (d *driver) yield(calls int) {
	if d.unyielding > 0 {
		d.unyielding--
		return
	}
	started := d.nodes.clock.Now()
	before := d.queue.size.Load()
	goal := before + int64(calls)
	for i := range maxYields {
		runtime.Gosched()
		now := d.queue.size.Load()
		if now >= goal || i > 0 && now == before {
			break // all are back, or no more come
		}
		before = now
	}
	if d.nodes.clock.Now().Sub(started) > slowYield {
		d.unyielding = yieldPause
	}
}
