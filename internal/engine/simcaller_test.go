package engine

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// simCaller is a goroutine of Engine.makeCalls. Of all callers and the world's own
// goroutine one runs at a time: resume hands control to a caller, which hands it
// back when it waits again, blocks in a callback, or has ended. So a callback can
// block for a while in world time, and a history still follows from its seed.
type simCaller struct {
	wake     chan bool     // to make calls or go on with one; false: to end
	yields   chan struct{} // control goes back
	waits    bool          // to be woken
	blocked  bool          // in a callback
	replaced bool          // by the watchdog
	since    time.Duration // it blocks
}

var errCallback = errors.New("a callback panics")

// startCaller starts the first caller, as Engine.Start does.
func (f *simFleet) startCaller() {
	f.arrivals, f.abandoned = make(chan struct{}), make(chan struct{})
	f.client.engine.routines.Add(1)
	f.expect()
	go f.client.engine.makeCalls(0)
	<-f.arrivals
}

// expect has the next caller come to the world before it calls anything else.
func (f *simFleet) expect() {
	c := &f.client.engine.callbacks
	c.mu.Lock()
	defer c.mu.Unlock()
	c.news = append(c.news, f.arrive)
	c.waiting.Add(1)
}

// unexpect takes expect back.
func (f *simFleet) unexpect() {
	c := &f.client.engine.callbacks
	c.mu.Lock()
	defer c.mu.Unlock()
	c.news = c.news[:0]
	c.waiting.Add(-1)
}

// arrive is the first that each caller calls. From here it takes its turns when the
// world wakes it.
func (f *simFleet) arrive() {
	c := &f.client.engine.callbacks
	c.mu.Lock()
	number := c.caller
	c.calling = false // this is no callback
	c.mu.Unlock()
	r := &simCaller{wake: make(chan bool), yields: make(chan struct{}), waits: true}
	f.caller = r
	f.arrivals <- struct{}{}
	for f.await(r) && f.client.engine.callTurn(number) {
		r.waits = true
		r.yields <- struct{}{}
	}
}

func (f *simFleet) await(r *simCaller) (more bool) {
	select {
	case more = <-r.wake:
	case <-f.abandoned:
		runtime.Goexit()
	}
	return more
}

// wakeCaller is Engine.callbacks.wake.
func (c *client) wakeCaller() {
	if !c.calling && !c.dead {
		c.calling = true
		c.after(c.world.between(0, 20*time.Microsecond), c.makeCalls)
	}
}

// makeCalls is a turn of the goroutine of callbacks.
func (c *client) makeCalls() {
	c.calling = false
	switch f := c.fleet; {
	case c.dead:
	case f.caller.waits:
		f.resume(f.caller)
	default:
		f.rung = true
	}
}

// resume lets a caller run until it gives control back.
func (f *simFleet) resume(r *simCaller) {
	before := f.running
	f.running = r
	r.waits, r.blocked = false, false
	r.wake <- true
	select {
	case <-r.yields:
	case <-f.arrivals: // its callback has ended it, and another has begun
		f.number++
		f.rung = true
	}
	f.running = before
	f.ring()
}

// ring wakes the caller for what came while it did not wait.
func (f *simFleet) ring() {
	if f.rung && f.caller.waits {
		f.rung = false
		f.client.wakeCaller()
	}
}

// block keeps the callback that runs, and its goroutine, for d.
func (f *simFleet) block(d time.Duration) {
	w, c, r := f.world, f.client, f.running
	w.note("block", c.index, int(d), 0)
	r.blocked, r.since = true, w.now()
	c.held++
	c.after(d, func() { f.resume(r) })
	r.yields <- struct{}{}
	f.await(r)
	c.held--
	if d > time.Millisecond {
		f.released = w.now()
	}
}

// leaves is the end of a callback. What a replaced caller does after it touches
// nothing.
func (f *simFleet) leaves() {
	if r := f.running; r != nil && r.replaced {
		r.yields <- struct{}{}
	}
}

// exit ends the goroutine of a callback.
func (f *simFleet) exit() {
	f.world.note("exit", f.client.index, 0, 0)
	f.running = nil
	f.expect()
	runtime.Goexit()
}

// lookAfterCaller is called by the watchdog after a tick.
func (c *client) lookAfterCaller() {
	f := c.fleet
	if c.world.rules.unwatched {
		return
	}
	old := f.caller
	f.expect()
	if c.engine.lookAfterCaller(); c.engine.callbacks.isCaller(f.number) {
		f.unexpect()
		return
	}
	c.world.note("replace", c.index, int(f.number), 0)
	if !old.blocked {
		c.world.check.fail("stuck", "a caller was replaced, and no callback blocked it")
	}
	old.replaced = true
	f.number++
	<-f.arrivals
	f.rung = true
	f.ring()
}

// Drain lets the caller end. It runs while Close waits.
func (f *simFleet) Drain() { f.caller.wake <- false }

// abandon ends the goroutines of a world that has come to its end.
func (f *simFleet) abandon() {
	c := &f.client.engine.callbacks
	c.mu.Lock()
	c.caller++ // none takes the place of those that end
	c.mu.Unlock()
	close(f.abandoned)
}

// panicked hears of panics in callbacks.
func (c *client) panicked(v any, _ []byte) {
	if v != error(errCallback) {
		c.world.check.fail("panic", fmt.Sprint(v))
	}
}
