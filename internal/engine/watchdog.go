package engine

import (
	"time"
)

// Bounds of the watchdog's tick. Timeouts are kept, and ended contexts noticed,
// to within one tick.
const (
	minTick = time.Millisecond
	maxTick = 5 * time.Millisecond
	// maxSkips is how many ticks are left out while a lone caller has the driver
	// lock and reads all replies. A mutex is handed over to a goroutine that waits
	// for it, and then the caller's next operation would wait for the reader.
	maxSkips = 3
)

// watchdog is the only timer there is, for all operations together. It runs
// while a node owes anything and sleeps otherwise.
type watchdog struct {
	awake bool
	busy  bool          // something was sent since the last tick
	wake  chan struct{} // holds one
	stop  chan struct{}
	tick  time.Duration // a quarter of the shortest timeout since it last slept
}

func (w *watchdog) init() {
	w.wake, w.stop, w.tick = make(chan struct{}, 1), make(chan struct{}), maxTick
}

// see notes that a batch is sent that must be answered within timeout.
func (w *watchdog) see(timeout time.Duration) {
	w.busy = true
	w.tick = max(minTick, min(w.tick, timeout/4))
	if !w.awake {
		w.awake = true
		w.wake <- struct{}{} // never blocks: it was emptied before awake became false
	}
}

// watch is the watchdog's goroutine.
func (e *Engine) watch() {
	defer e.routines.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-e.watchdog.wake:
		case <-e.watchdog.stop:
			return
		}
		next, skipped := maxTick, 0
		tick := func() { next = e.tick() }
		for next > 0 {
			timer.Reset(next)
			select {
			case <-timer.C:
			case <-e.watchdog.stop:
				return
			}
			if skipped < maxSkips && e.alone.Load() && e.depth.Load() == 1 {
				skipped++
				continue
			}
			skipped = 0
			e.driver.Lock()
			e.turn(tick)
			e.lookAfterCaller()
		}
	}
}

// tick is one turn of the watchdog: it reads stragglers, fails what was not answered
// in time, ends the calls with a context that has ended, and closes silent connections. It
// returns the time to the next tick, or 0 to sleep.
func (e *Engine) tick() time.Duration {
	now := e.clock.Now() // before the Sweep: what has arrived by then is not late, however long this process stood still
	e.fleet.Sweep(0)
	for i := len(e.inFlight) - 1; i >= 0; i-- {
		b := e.inFlight[i]
		e.checkContexts(b)
		if b.expire(now); b.undecided == 0 && b.passed {
			b.listed = false
			last := len(e.inFlight) - 1
			e.inFlight[i] = e.inFlight[last]
			e.inFlight[last] = nil
			e.inFlight = e.inFlight[:last]
		}
	}
	e.checkWaitingContexts()
	e.expireQueries(now)
	e.fleet.Check()
	e.complete()
	hinted := e.retryHints(now)
	busy := hinted || e.watchdog.busy || e.unanswered > 0 || e.queue.size.Load() > 0 || e.queries.behind > 0 || !e.callbacks.idle()
	if e.watchdog.busy = false; !busy {
		e.watchdog.awake = false
		e.watchdog.tick = maxTick
		return 0
	}
	return e.watchdog.tick
}
