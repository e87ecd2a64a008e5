package engine

import "time"

// wakeCaller is Engine.callbacks.wake.
func (c *client) wakeCaller() {
	select {
	case c.engine.callbacks.woken <- struct{}{}:
	default:
	}
	if !c.calling && !c.inCalls && !c.dead {
		c.calling = true
		c.after(c.world.between(0, 20*time.Microsecond), c.makeCalls)
	}
}

// makeCalls is a turn of the goroutine of callbacks. It blocks only where it reads replies.
func (c *client) makeCalls() {
	c.calling = false
	if c.dead {
		return
	}
	woken := c.engine.callbacks.woken
	if len(woken) > 0 {
		<-woken
	}
	c.inCalls = true
	c.engine.callTurn(0)
	c.inCalls = false
	if len(woken) > 0 {
		c.wakeCaller()
	}
}

// Drain makes the last calls. It runs while Close waits.
func (f *simFleet) Drain() { f.client.engine.callTurn(0) }

// misbehave is a callback that comes back with its result, and cancels what another has
// asked for.
func (c *client) misbehave(back func()) {
	w := c.world
	back()
	if s := c.sessions[w.IntN(len(c.sessions))]; w.rules.wild && !w.ending && w.chance(12) && s.pending && !s.doing {
		s.cancel(s.serial)
	}
}

// panicked hears of panics in callbacks, which are the sessions' own.
func (c *client) panicked(v any, _ []byte) { panic(v) }
