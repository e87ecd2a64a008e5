package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/renewal"
	"github.com/redlock-go/redlock/internal/waiters"
	"github.com/redlock-go/redlock/quorum"
)

// simLease is a lease of package group: one lock, and the number of its present handle.
type simLease struct {
	lock   *lock
	client *client
	life   uint64
	told   bool // it must not pass on
}

// simHandle is a handle on a lock, good for one life of its lease.
type simHandle struct {
	lease *simLease
	life  uint64
	ttl   time.Duration
	since time.Duration // its lock was granted
	fence uint64        // its token
	live  bool          // its user has not given it back
}

// hold has a waiter hold the lock for a while, and release it.
func (w *simWaiter) hold(h *simHandle) {
	world, c, l := w.world, w.client, h.lease.lock
	w.state = holds
	world.check.holds(w, h)
	if w.world.check.failed() {
		return
	}
	d := world.between(0, 500*time.Microsecond)
	if !world.check.brief {
		switch n := world.IntN(100); {
		case n < 10:
			d = world.between(0, h.ttl/4)
		case n < 14 && !world.rules.calm:
			d = world.between(0, h.ttl*3/2)
		}
	}
	if world.ending {
		d = min(d, 5*time.Millisecond)
	}
	if world.chance(3) && !world.check.brief {
		h.lease.told = true // its user has asked for the token
	}
	for range world.IntN(3) {
		if world.chance(world.check.extends) {
			c.after(world.between(0, d+1), func() { w.extend(h) })
		}
	}
	forgets := world.chance(3) && !world.rules.calm
	serial := w.serial
	c.after(d, func() {
		switch {
		case c.dead || w.serial != serial:
		case forgets:
			world.note("forget", c.index, 0, l.number)
			world.check.ends(h)
			l.forgotten, l.holding = true, false
			w.pause()
		default:
			w.lines.release(h, world.chance(30))
			if world.rules.bothHold && world.chance(50) {
				h.live = true
				world.check.holds(w, h)
			}
			w.pause()
		}
	})
}

// is says whether the handle's life has not ended.
func (h *simHandle) is() bool { return h.live && h.life == h.lease.life && !h.lease.lock.over }

// extend is Extend.
func (w *simWaiter) extend(h *simHandle) {
	world, c, l := w.world, w.client, h.lease.lock
	now := c.clock.Now()
	if !h.is() || c.dead || w.state != holds || now >= l.validity.until() {
		return
	}
	ttl := h.ttl
	if world.chance(40) {
		ttl = world.between(10*time.Millisecond, h.ttl+1).Truncate(time.Millisecond)
	}
	l.ttl = max(l.ttl, ttl)
	x := l.validity.Extending(ttl, quorum.Until(now, ttl))
	l.believe()
	l.extends = append(l.extends, world.now())
	w.lines.operate(l, Extend, ttl, nil, func(call *Call, err error, unsent bool) {
		result := resultOf(err)
		if unsent {
			result = renewal.Unsent
		}
		l.lost = l.lost || result == renewal.Lost
		before := l.validity.Until()
		l.validity.Extended(x, result)
		renewal.Drop(x)
		if world.rules.handsLost && result == renewal.Lost {
			l.validity.Validity = renewal.Begin(h.ttl, before)
			h.lease.told = false
		}
		if l.holding {
			l.prolonged(result)
		} else {
			l.believe()
		}
		if h.is() {
			if wake := w.lines.table.Shortened(w.name, l.validity.until()); wake != nil {
				wake.Owner.ring()
			}
		}
	})
}

// pass passes the lock of h on to the first that waits for it, and says whether it did.
func (l *simLines) pass(h *simHandle) bool {
	lease, lock := h.lease, h.lease.lock
	name := keyNames[lock.key]
	first := l.table.MayPass(name)
	if !l.passes || first == nil || lease.told || lock.validity.releases > 0 || (lease.life+1)%waiters.MaxPasses == 0 {
		return false
	}
	w := first.Owner
	until, ok := lock.validity.Pass(l.Now(), w.ttl)
	if l.world.rules.handsExpired && !ok && l.world.chance(50) {
		until, ok = lock.validity.Until(), true
	}
	if !ok {
		return false
	}
	l.world.note("pass", l.client.index, lock.key, lock.number)
	l.world.check.ends(h)
	lease.life++
	lock.passes++
	lock.ttl = max(lock.ttl, w.ttl)
	lock.believe()
	w.handed = &simHandle{lease: lease, life: lease.life, ttl: w.ttl, since: h.since, fence: h.nextFence()}
	if l.client.fence != nil {
		l.world.check.fences.passed++
		l.world.check.holds1(lock, w.handed.fence)
	}
	l.world.check.passed(w, lock)
	l.change(name, l.table.Passed(first, until))
	w.ring()
	return true
}

// nextFence is the token of the next holder.
func (h *simHandle) nextFence() uint64 {
	if h.fence == 0 || h.lease.client.world.rules.sameToken {
		return h.fence
	}
	return h.fence + 1
}

// release is Release, or ReleaseAsync.
func (l *simLines) release(h *simHandle, async bool) {
	c, lock, world := l.client, h.lease.lock, l.world
	name := keyNames[lock.key]
	if c.dead || l.pass(h) {
		return
	}
	world.check.ends(h)
	lock.validity.releases++
	lock.believe()
	lock.holding, lock.over = false, true
	if async {
		world.note("discard", c.index, 0, lock.number)
		call := l.callOf(lock, Release, 0)
		world.check.submitted(c, lock, Release)
		c.engine.Discard(call)
		c.engine.Drive()
		l.freed(lock)
		return
	}
	var along *simWaiter
	if l.usable != 0 {
		if w := l.table.Along(name); w != nil {
			along = w.Owner
			along.back = false
			along.ring()
		}
	}
	send := func() {
		if c.dead {
			lock.forgotten = true
			return
		}
		l.operate(lock, Release, 0, along, func(_ *Call, err error, unsent bool) {
			if unsent || err == ErrClosed {
				lock.forgotten = true
			}
			if along == nil {
				l.freed(lock)
			}
		})
	}
	if along != nil && world.chance(30) { // another goroutine is first
		c.after(world.between(0, 20*time.Microsecond), send)
		return
	}
	send()
}

// freed wakes the first that waits for a lock that was given back.
func (l *simLines) freed(lock *lock) {
	began := lock.validity.Until() - lock.validity.TTL() + quorum.Drift(lock.validity.TTL())
	if wake := l.table.Freed(keyNames[lock.key], lock.passes > 0, l.Now()-began, l.usable); wake != nil {
		wake.Owner.ring()
	}
}

func (l *simLines) callOf(lock *lock, kind Kind, ttl time.Duration) *Call {
	c := &Call{done: make(chan struct{}, 1)}
	c.Kind, c.Key, c.Token, c.TTL, c.Done = kind, []byte(keyNames[lock.key]), tokenOf(lock.number), ttl, c
	if kind == Release {
		c.Absent = lock.absent
	}
	if err := l.client.engine.check(&c.Op); err != nil {
		l.world.check.fail("once", "Check: "+err.Error())
	}
	return c
}

// simOperation is an extend or a release that is under way.
type simOperation struct {
	call  *Call
	lock  *lock
	asked time.Duration
	then  func(c *Call, err error, unsent bool)
}

// operate asks for something, and perhaps for the lock for the next waiter with it.
func (l *simLines) operate(lock *lock, kind Kind, ttl time.Duration, along *simWaiter, then func(*Call, error, bool)) {
	c, check := l.client, &l.world.check
	call := l.callOf(lock, kind, ttl)
	var ops list
	ops.push(&call.Op)
	check.submitted(c, lock, kind)
	if along != nil {
		along.prepare()
		check.submitted(c, along.attempt, Acquire)
		ops.push(&along.call.Op)
	}
	l.world.note("operate", c.index, int(kind), lock.number)
	now := c.clock.Now()
	err := c.engine.enqueueAll(ops, now, bounded)
	if along != nil {
		along.calls = err == nil
		if err == nil {
			c.pending++
		} else {
			along.attempt.over, along.back, along.unsent = true, true, true
			along.goesOn()
		}
	}
	if err == ErrBusy && along != nil { // there may be room for one, where there is none for both
		l.operate(lock, kind, ttl, nil, func(c *Call, err error, unsent bool) {
			l.freed(lock)
			then(c, err, unsent)
		})
		return
	}
	if err != nil {
		then(call, err, true)
		return
	}
	c.pending++
	l.operations = append(l.operations, &simOperation{call, lock, l.world.now(), then})
	c.engine.submittedNow(kind, now, nil)
}

// pollOperations takes the ends of extends and releases in.
func (l *simLines) pollOperations() (back bool) {
	for i := 0; i < len(l.operations); i++ {
		o := l.operations[i]
		if len(o.call.done) == 0 {
			continue
		}
		<-o.call.done
		l.client.pending--
		l.operations = append(l.operations[:i:i], l.operations[i+1:]...)
		i--
		back = true
		l.world.check.votes(l.client, o.lock, &o.call.Op, o.asked)
		o.then(o.call, o.call.Err, false)
	}
	return back
}
