package engine

import (
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// Bounds of the watchdog's tick. Timeouts are kept, and ended contexts noticed,
// to within one tick.
const (
	minTick = time.Millisecond
	maxTick = 5 * time.Millisecond
	// limitTick is between two looks for ended Limits, at least: each looks at all operations.
	limitTick = maxTick / 2

	// MinTimeout is the shortest Config.Timeout that can be kept.
	MinTimeout = minTick
)

// pulse is when the watchdog ticks: while a node owes anything. It sleeps otherwise, at most until a hint or a
// [spares.trim] is due.
type pulse struct {
	awake atomic.Bool
	busy  bool          // something was sent since the last tick
	wake  chan struct{} // holds one
	stop  chan struct{}
	tick  time.Duration // a quarter of the shortest timeout since it last slept
}

func (p *pulse) init() {
	p.wake, p.stop, p.tick = make(chan struct{}, 1), make(chan struct{}), maxTick
}

// rouse is the begin of a tick, which may have come while asleep.
func (p *pulse) rouse() {
	p.awake.Store(true)
	select {
	case <-p.wake:
	default:
	}
}

// rest is the time to the next tick. Where nothing is under way, and nothing was sent since the last, it sleeps for as
// long as it may. limit is the time to the end of the next Limit.
func (p *pulse) rest(atMost, limit time.Duration, busy bool) (next time.Duration) {
	busy = busy || p.busy
	p.busy = false
	if !busy {
		p.tick = maxTick
		return atMost
	}
	p.awake.Store(true)
	return min(p.tick, max(limit, minTick))
}

// see notes that a batch is sent, to be answered within timeout.
func (p *pulse) see(timeout time.Duration) {
	p.busy = true
	p.tick = max(minTick, min(p.tick, timeout/4))
	p.wakeUp()
}

// wakeUp wakes the watchdog where it sleeps. It needs no lock: each call of user code begins with it, and a watchdog that
// goes to sleep looks for a call once more after awake is false. So either it sees the call, or its caller sees that.
// One sleep is ended once: calls that follow each other closely must not put its tick off again and again.
func (p *pulse) wakeUp() {
	if p.awake.Load() || !p.awake.CompareAndSwap(false, true) {
		return
	}
	select {
	case p.wake <- struct{}{}:
	default: // it was woken
	}
}

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
	d.ledger.expire(now)
	d.queries.expire(now)
	d.nodes.Check()
	d.ledger.complete()
	due := min(d.ledger.again(now), d.ledger.free.trim(now))
	d.nodes.pulse.awake.Store(false)
	now = d.nodes.clock.Now() // a look at all that waits takes long
	return d.nodes.pulse.rest(due.Sub(now), d.ledger.nextLimit().Sub(now), d.nodes.unanswered.Inside() > 0 || d.queue.size.Load() > 0 || d.queries.behind > 0 || !d.callbacks.idle())
}
