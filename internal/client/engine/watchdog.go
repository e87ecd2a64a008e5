package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// watch is the watchdog's goroutine. It sleeps until it is woken, or until a hint is due.
func (d *driver) watch() {
	defer d.routines.Done()
	p := &d.nodes.pulse
	next := clock.Forever
	timer := time.NewTimer(next)
	defer timer.Stop()
	for {
		select {
		case <-p.wake:
			timer.Reset(maxTick)
			continue
		case <-timer.C:
		case <-p.stop:
			return
		}
		d.lock.Lock()
		d.turn(func() { next = d.tick() })
		d.lookAfterCaller()
		timer.Reset(next)
	}
}

// tick is one turn of the watchdog: it reads stragglers, fails late votes, ends the calls whose callers wait no longer, and
// closes silent connections. It returns the time to the next tick, or to the next due hint.
func (d *driver) tick() time.Duration {
	d.nodes.pulse.rouse()
	now := d.nodes.clock.Now() // before the Sweep: what has arrived by then is not late, however long this process stood still
	d.nodes.Sweep(0)
	d.rounds.expire(now)
	d.queries.expire(now)
	d.nodes.Check()
	d.rounds.complete()
	due := d.rounds.again(now)
	return d.nodes.pulse.rest(due.Sub(now), d.nodes.unanswered.Inside() > 0 || d.queue.size.Load() > 0 || d.queries.behind > 0 || !d.callbacks.idle())
}
