package engine

import (
	"errors"
	"fmt"
	"runtime"
	"time"
)

// simReader is a goroutine of Engine.read. Of all readers and the world's own
// goroutine one runs at a time: resume hands control to a reader, which hands it
// back when it waits again, blocks in a callback, or has ended. So a callback can
// block for a while in world time, and a history still follows from its seed.
type simReader struct {
	wake     chan bool     // what Wait returns, or the end of a block
	yields   chan struct{} // control goes back
	waits    bool          // in Wait
	blocked  bool          // in a callback
	replaced bool          // by the watchdog
	since    time.Duration // it blocks
}

var errCallback = errors.New("a callback panics")

// startReader starts the first reader, as Engine.Start does.
func (f *simFleet) startReader() {
	f.arrivals = make(chan struct{})
	f.client.engine.routines.Add(1)
	go f.client.engine.read(0)
	<-f.arrivals
}

// Wait is where a reader waits for its turn, and where a new one begins.
func (f *simFleet) Wait() bool {
	if f.abandoned {
		runtime.Goexit()
	}
	if r := f.running; r != nil {
		r.waits = true
		r.yields <- struct{}{}
		return f.await(r)
	}
	r := &simReader{wake: make(chan bool), yields: make(chan struct{}), waits: true}
	f.reader = r
	f.arrivals <- struct{}{}
	return f.await(r)
}

func (f *simFleet) await(r *simReader) bool {
	open := <-r.wake
	if f.abandoned {
		runtime.Goexit()
	}
	return open
}

// resume lets a reader run until it gives control back.
func (f *simFleet) resume(r *simReader) {
	before := f.running
	f.running = r
	r.waits, r.blocked = false, false
	r.wake <- true
	select {
	case <-r.yields:
	case <-f.arrivals: // its callback has ended it, and another has begun
		f.number++
	}
	f.running = before
	f.ring()
}

// ring wakes the reader for what came while it did not wait.
func (f *simFleet) ring() {
	if f.rung && f.reader.waits {
		f.rung, f.reading = false, true
		f.world.after(f.world.between(0, 40*time.Microsecond), f.client.read)
	}
}

// block keeps the callback that runs, and its reader, for d.
func (f *simFleet) block(d time.Duration) {
	w, c, r := f.world, f.client, f.running
	w.note("block", c.index, int(d), 0)
	r.blocked, r.since = true, w.now()
	c.held++
	w.after(d, func() { f.unblock(r) })
	r.yields <- struct{}{}
	f.await(r)
	c.held--
	if d > time.Millisecond {
		f.released = w.now()
	}
}

// unblock lets a callback go on. Its reader takes the role behind it, unless
// another has its place.
func (f *simFleet) unblock(r *simReader) {
	if !r.replaced && !f.client.free() {
		f.client.later(func() { f.unblock(r) })
		return
	}
	f.resume(r)
}

// leaves is the end of a callback. What a replaced reader does behind it touches
// nothing.
func (f *simFleet) leaves() {
	if r := f.running; r != nil && r.replaced {
		r.yields <- struct{}{}
	}
}

// exit ends the goroutine of a callback.
func (f *simFleet) exit() {
	f.world.note("exit", f.client.index, 0, 0)
	f.exited = f.world.now()
	f.running = nil // the next to wait is another reader
	runtime.Goexit()
}

// lookAfterReader is what the watchdog does behind a tick.
func (c *client) lookAfterReader() {
	f := c.fleet
	if c.world.rules.unwatched {
		return
	}
	old := f.reader
	if c.engine.lookAfterReader(); c.engine.callbacks.isReader(f.number) {
		return
	}
	c.world.note("replace", c.index, int(f.number), 0)
	if !old.blocked {
		c.world.check.fail("stuck", "a reader was replaced, and no callback blocked it")
	}
	old.replaced = true
	f.number++
	<-f.arrivals
	f.ring()
}

// Drain lets the reader end. It runs while Close waits.
func (f *simFleet) Drain() { f.reader.wake <- false }

// abandon ends the goroutines of a world that has failed.
func (f *simFleet) abandon() {
	if f.closed || f.reader == nil {
		return
	}
	f.abandoned = true
	close(f.reader.wake)
}

// panicked hears of panics in callbacks.
func (c *client) panicked(v any, _ []byte) {
	if v != error(errCallback) {
		c.world.check.fail("panic", fmt.Sprint(v))
	}
}
