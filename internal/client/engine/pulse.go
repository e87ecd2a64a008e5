package engine

import "time"

// Bounds of the watchdog's tick. Timeouts are kept, and ended contexts noticed,
// to within one tick.
const (
	minTick = time.Millisecond
	maxTick = 5 * time.Millisecond
)

// pulse is when the watchdog ticks: while a node owes anything. It sleeps otherwise.
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

// rest is the time to the next tick; 0, to sleep, where nothing is under way and nothing was sent since the last.
func (p *pulse) rest(busy bool) (next time.Duration) {
	if busy = busy || p.busy; !busy {
		p.awake, p.tick = false, maxTick
		return 0
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
