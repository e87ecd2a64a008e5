package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/command"
)

// client is one engine with its fleet and the sessions that use it. What
// Engine.Start does with goroutines, it does with events.
type client struct {
	world    *world
	index    int
	clock    *skewed
	engine   *Engine
	fleet    *simFleet
	sessions []*session
	busy     int // holders of the driver lock that last longer than an event
	pending  int // operations submitted and not yet back
	ticking  bool
	dead     bool
	calling  bool          // callbacks are about to be called
	inCalls  bool          // their goroutine calls them, or reads replies
	left     time.Duration // since when operations wait though the window is open, at rest
	standing time.Duration // until then its process stands still
	woken    time.Duration // when it went on last
}

func newClient(w *world, index int) *client {
	c := &client{world: w, index: index, clock: w.newClock()}
	waiting := 64
	if w.chance(20) {
		waiting = 1 + w.IntN(3)
	}
	var timeout time.Duration
	if w.chance(50) {
		timeout = w.between(time.Millisecond, 30*time.Millisecond)
	}
	c.engine = New(Config{Clock: c.clock, Quorum: w.quorum, MaxWaiting: waiting, Timeout: timeout, OnPanic: c.panicked})
	c.fleet = newSimFleet(c)
	attach(c.engine, c.fleet)
	c.engine.callbacks.wake = c.wakeCaller
	if w.chance(50) {
		c.engine.window.size = 1 + w.IntN(4)
	}
	for range 1 + w.IntN([]int{2, 4, 12}[w.IntN(3)]) {
		c.sessions = append(c.sessions, newSession(c))
	}
	return c
}

// attach is Engine.Start without its goroutines, and every node comes up.
func attach(e *Engine, f Fleet) {
	e.take(f)
	for i := range f.Len() {
		e.NodeUp(i)
	}
}

func (c *client) start() {
	for _, s := range c.sessions {
		c.after(c.world.between(1, 10*time.Millisecond), s.next)
	}
}

// free reports whether the driver lock can be had at once.
func (c *client) free() bool { return c.busy == 0 }

// after has f run in d, or in a while if the process stands still by then.
func (c *client) after(d time.Duration, f func()) {
	w := c.world
	w.after(d, func() {
		if c.frozen() {
			c.after(c.standing-w.now()+w.between(0, 50*time.Microsecond), f)
			return
		}
		f()
	})
}

// freeze has the process stand still, with nothing under way in it: what is to happen
// there happens when it goes on, in any order.
func (c *client) freeze(d time.Duration) {
	w := c.world
	if c.dead || c.frozen() || !c.free() {
		return
	}
	w.note("freeze", c.index, int(d), 0)
	c.standing = w.now() + d
	w.after(d, func() {
		c.woken, c.left = w.now(), 0
	})
}

// ran reports whether the process has been going for d at least.
func (c *client) ran(d time.Duration) bool { return !c.frozen() && c.world.now()-c.woken > d }

func (c *client) frozen() bool { return c.world.now() < c.standing }

// later tries again in a moment what cannot have the driver lock now.
func (c *client) later(f func()) { c.after(c.world.between(0, 5*time.Microsecond), f) }

// collects reports whether operations that wait may be left to the goroutine of
// callbacks, or to the next tick.
func (c *client) collects() bool {
	return c.calling || c.clock.Now() < time.Duration(c.engine.collectOps.Load())+tickLate
}

// reader is a turn of the reader goroutine, woken by an arrival.
func (c *client) reader() {
	switch {
	case c.dead:
		return
	case !c.free():
		c.later(c.reader)
		return
	}
	c.fleet.reading = false
	c.engine.receive(func(int) {})
}

// watch is the watchdog's goroutine taking its alarm.
func (c *client) watch() {
	if len(c.engine.watchdog.wake) == 0 {
		return
	}
	<-c.engine.watchdog.wake
	if c.ticking {
		c.world.check.fail("stuck", "an alarm while the watchdog is awake")
	}
	c.ticking = true
	c.after(maxTick, c.tick)
}

func (c *client) tick() {
	switch {
	case c.dead:
		return
	case !c.free():
		c.later(c.tick)
		return
	}
	var next time.Duration
	c.engine.driver.Lock()
	c.engine.turn(func() { next = c.engine.tick() })
	if c.ticking = next > 0; c.ticking {
		c.after(next, c.tick)
	}
}

// kill closes the engine at once, with operations under way.
func (c *client) kill() {
	if c.dead {
		return
	}
	if c.frozen() || !c.free() {
		c.world.after(c.world.between(0, time.Millisecond), c.kill)
		return
	}
	c.world.note("kill", c.index, 0, 0)
	c.dead = true
	for i := range c.engine.nodes { // what is owed now is never paid
		for entries := c.engine.hints[i].entries; len(entries) > 0; {
			var op command.Operand
			op, entries = cutHint(entries)
			if n, err := lockOfToken(string(op.Token)); err == nil {
				c.world.check.lock(n).excused[c.fleet.links[i].master.index] = true
			}
		}
	}
	c.close(0)
}

// close closes the engine.
func (c *client) close(bound time.Duration) {
	c.engine.Close(after(bound))
	c.engine.routines.Wait()
}
