package engine

import "time"

// Bounds of the watchdog's tick. Timeouts are kept, and ended contexts noticed,
// to within one tick.
const (
	minTick = time.Millisecond
	maxTick = 5 * time.Millisecond

	// MinTimeout is the shortest Config.Timeout that can be kept.
	MinTimeout = minTick
)

// pulse is when the watchdog ticks: while a node owes anything. It sleeps otherwise, at most until a hint is due.
type pulse struct {
	awake bool
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
	p.awake = true
	select {
	case <-p.wake: // so that see never blocks
	default:
	}
}

// rest is the time to the next tick. Where nothing is under way, and nothing was sent since the last, it sleeps for as
// long as it may.
func (p *pulse) rest(atMost time.Duration, busy bool) (next time.Duration) {
	busy = busy || p.busy
	if !busy {
		p.awake, p.tick = false, maxTick
		return atMost
	}
	p.busy = false
	return p.tick
}

// see notes that a batch is sent, to be answered within timeout.
func (p *pulse) see(timeout time.Duration) {
	p.busy = true
	p.tick = max(minTick, min(p.tick, timeout/4))
	if !p.awake {
		p.awake = true
		p.wake <- struct{}{} // never blocks: it was emptied before awake became false
	}
}
