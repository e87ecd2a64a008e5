package engine

import "runtime/debug"

// makeCalls is the goroutine of callbacks.
func (d *driver) makeCalls(number uint64) {
	c := &d.callbacks
	defer func() {
		if c.isCaller(number) { // else another has taken its place
			d.routines.Done()
		}
	}()
	for d.callTurn(number) {
		select {
		case <-c.woken:
		case <-c.closed:
			d.callTurn(number)
			return
		}
	}
}

// callTurn makes the waiting calls, as caller number, and sends what they have submitted. It returns false if the
// caller was replaced meanwhile.
//
// If as many operations are under way then as were completed, and not too many, the callbacks have submitted again
// and no other caller waits. So this goroutine reads the replies, as a lone caller does, until there are calls to make.
func (d *driver) callTurn(number uint64) bool {
	completed := 0
	if d.callbacks.waiting.Load() > 0 {
		for !d.callUntilPanic(number, &completed) { // the next look ends the call that has panicked
		}
	}
	if !d.callbacks.isCaller(number) {
		return false
	}
	d.callbacks.collects.Store(0)
	if completed == 0 || completed > maxReadOwn {
		d.drive(lone{})
		return true
	}
	d.drive(lone{own: int64(completed), done: d.callbacks.woken, from: d.nodes.clock.Now(), span: aloneFor})
	return true
}

// callUntilPanic makes calls until none waits or the caller was replaced, and
// returns true; or until one panics, and returns false. A callback, or the report of
// its panic, may end this goroutine (runtime.Goexit): then another takes its place.
// completed counts the operations among them.
func (d *driver) callUntilPanic(number uint64, completed *int) (done bool) {
	returns := false
	defer func() {
		if !returns {
			d.replaceCaller(number)
		}
	}()
	defer func() {
		if v := recover(); v != nil {
			d.report(v)
			returns = true
		}
	}()
	var j job
	for d.callbacks.next(number, &j) {
		switch {
		case j.op != nil:
			*completed++
			j.op.Done.Complete(j.op)
		default:
			d.nodes.pulse.wakeUp()
			j.event.Report()
		}
	}
	returns = true
	return true
}

// report reports a panic of user code. It calls user code itself.
func (d *driver) report(v any) {
	defer func() { _ = recover() }()
	if d.onPanic != nil {
		d.onPanic(v, debug.Stack())
	}
}

// lookAfterCaller starts another goroutine where a callback lasts too long. The watchdog calls it without the driver
// lock.
func (d *driver) lookAfterCaller() {
	if slow, number := d.callbacks.slow(d.nodes.clock.Now()); slow {
		go d.makeCalls(number)
	}
}

// replaceCaller starts a goroutine in place of an ending one.
func (d *driver) replaceCaller(number uint64) {
	c := &d.callbacks
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.caller == number {
		go d.makeCalls(c.replace())
	}
}
