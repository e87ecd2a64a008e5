package engine

import "time"

// watch is the watchdog's goroutine.
func (d *driver) watch() {
	defer d.routines.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-d.nodes.pulse.wake:
		case <-d.nodes.pulse.stop:
			return
		}
		next := maxTick
		tick := func() { next = d.tick() }
		for next > 0 {
			timer.Reset(next)
			select {
			case <-timer.C:
			case <-d.nodes.pulse.stop:
				return
			}
			d.lock.Lock()
			d.turn(tick)
			d.lookAfterCaller()
		}
	}
}

// tick is one turn of the watchdog: it reads stragglers, fails late votes, ends the calls with an ended context, and
// closes silent connections. It returns the time to the next tick, or 0 to sleep.
func (d *driver) tick() time.Duration {
	now := d.nodes.clock.Now() // before the Sweep: what has arrived by then is not late, however long this process stood still
	d.nodes.Sweep(0)
	d.rounds.expire(now)
	d.queries.expire(now)
	d.nodes.Check()
	d.complete()
	hinted := d.rounds.again(now)
	return d.nodes.pulse.rest(hinted || d.nodes.unanswered > 0 || d.queue.size.Load() > 0 || d.queries.behind > 0 || !d.callbacks.idle())
}
