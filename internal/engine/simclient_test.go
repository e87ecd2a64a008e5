package engine

import "time"

// client is one engine with its fleet and the sessions that use it. What
// Engine.Start does with goroutines, it does with events.
type client struct {
	world    *world
	index    int
	clock    *skewed
	engine   *Engine
	fleet    *simFleet
	sessions []*session
	busy     int // holders of the role that last longer than an event
	pending  int // operations submitted and not yet back
	held     int // those of them that a callback keeps which blocks
	ticking  bool
	dead     bool
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
	c.engine = New(Config{Clock: c.clock, MaxWaiting: waiting, Timeout: timeout, OnPanic: c.panicked})
	c.fleet = newSimFleet(c)
	attach(c.engine, c.fleet)
	c.fleet.startReader()
	if w.chance(50) {
		c.engine.gate.window = 1 + w.IntN(4)
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
		c.world.after(c.world.between(1, 10*time.Millisecond), s.next)
	}
}

// free says whether the role can be had at once.
func (c *client) free() bool { return c.busy == 0 }

// later tries again in a moment what cannot have the role now.
func (c *client) later(f func()) { c.world.after(c.world.between(0, 5*time.Microsecond), f) }

// read is a turn of the reader goroutine, woken by an arrival.
func (c *client) read() {
	switch f := c.fleet; {
	case c.dead:
	case !f.reader.waits:
		f.reading, f.rung = false, true
	case !c.free():
		c.later(c.read)
	default:
		f.reading = false
		f.resume(f.reader)
	}
}

// watch is the watchdog's goroutine taking its alarm.
func (c *client) watch() {
	if len(c.engine.watchdog.alarm) == 0 {
		return
	}
	<-c.engine.watchdog.alarm
	if c.ticking {
		c.world.check.fail("stuck", "an alarm while the watchdog is awake")
	}
	c.ticking = true
	c.world.after(maxTick, c.tick)
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
	c.engine.role.Lock()
	c.engine.turn(func() { next = c.engine.tick() })
	c.lookAfterReader()
	if c.ticking = next > 0; c.ticking {
		c.world.after(next, c.tick)
	}
}

// kill closes the engine at once, whatever is under way.
func (c *client) kill() {
	if c.dead {
		return
	}
	if !c.free() || c.held > 0 { // Close waits for callbacks, in real time
		c.world.after(c.world.between(0, time.Millisecond), c.kill)
		return
	}
	c.world.note("kill", c.index, 0, 0)
	c.dead = true
	for i := range c.engine.nodes { // what is owed now is never paid
		for entries := c.engine.hints[i].entries; len(entries) > 0; {
			var op operand
			op, entries = cutHint(entries)
			if n, err := lockOfToken(string(op.token)); err == nil {
				c.world.check.lock(n).excused[c.fleet.links[i].master.index] = true
			}
		}
	}
	c.close(0)
}

// close closes the engine, whose reader ends before anything else happens.
func (c *client) close(bound time.Duration) {
	c.engine.Close(bound)
	c.engine.routines.Wait()
}
