package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/renewal"
	"github.com/redlock-go/redlock/internal/waiters"
	"github.com/redlock-go/redlock/quorum"
)

// simWaiter is a user that acquires in line, holds and releases, and its goroutine.
type simWaiter struct {
	waiters.Waiter[*simWaiter]
	lines  *simLines
	client *client
	world  *world

	state    waiterState
	serial   int // of its Acquire
	name     string
	key      int
	ttl      time.Duration
	call     *Call
	calls    bool  // its call is under way
	back     bool  // its call has come back
	unsent   bool  // it was not sent
	attempt  *lock // of the call
	asked    time.Duration
	ended    chan struct{} // closed when its context ends
	canceled bool
	woken    bool // its wake channel is full
	parks    int  // counts them
	query    *simQuery
	handed   *simHandle
	won      bool
	began    time.Duration
	proposal fencing.Proposal
	tries    int
}

type waiterState uint8

const (
	outside  waiterState = iota
	alone                // its attempt is under way, and it is in no line
	runs                 // or is about to
	parked               // until it is woken
	asksNode             // waits for the answer of a node
	attempts             // waits for its call
	leaves               // waits until it may
	holds                // or releases
	isDead
)

// next begins an Acquire.
func (w *simWaiter) next() {
	world, c := w.world, w.client
	if world.ending || c.dead || w.state != outside {
		return
	}
	w.serial++
	w.Owner = w
	w.key = world.IntN(world.check.keys)
	w.name, w.began = keyNames[w.key], world.now()
	w.ttl = world.between(30*time.Millisecond, 200*time.Millisecond)
	if world.chance(30) {
		w.ttl *= 5
	}
	if world.check.oneTTL > 0 {
		w.ttl = world.check.oneTTL
	}
	if world.rules.fenced {
		w.ttl = world.between(20*time.Millisecond, longestHeld)
	}
	w.ttl = w.ttl.Truncate(time.Millisecond)
	w.call = &Call{done: make(chan struct{}, 1)}
	w.call.Done = w.call
	w.ended, w.canceled, w.woken, w.handed, w.won = make(chan struct{}), false, false, nil, false
	if world.chance(world.check.cancels) {
		serial := w.serial
		c.after(world.between(0, 30*time.Millisecond), func() {
			if w.serial == serial {
				w.cancel()
			}
		})
	}
	if !w.lines.table.IsContended(w.name) {
		w.state = alone
		if !w.submit() {
			w.state = outside
			w.pause()
		}
		return
	}
	w.stand(0)
}

// pause waits before the next Acquire.
func (w *simWaiter) pause() {
	w.state = outside
	d := w.world.between(0, 2*time.Millisecond)
	if w.world.chance(10) {
		d *= 20
	}
	w.client.after(d, w.next)
}

// cancel ends the context.
func (w *simWaiter) cancel() {
	if w.canceled || w.state == outside || w.state == holds || w.state == isDead {
		return
	}
	w.world.note("cancel", w.client.index, int(w.state), w.key)
	w.canceled = true
	close(w.ended)
	switch {
	case w.state == parked:
		w.resume()
	case w.state == asksNode && !w.query.over && w.world.chance(20): // as a panic does
		w.query.over = true
		w.query.Free()
		w.query = nil
		w.leaveWith(nil)
	case w.state == asksNode && !w.query.over:
		w.lines.end(w.query, func() error { return errGivenUp })
	}
}

// stand goes to the end of the line.
func (w *simWaiter) stand(denied uint64) {
	if w.lines.table.Stand(w.name, &w.Waiter, denied) {
		w.lines.known++
		w.lines.wakeSentry(0)
	}
	w.world.check.stands(w)
	w.resume()
}

// ring wakes the waiter. One in a hundred is cancelled in that moment.
func (w *simWaiter) ring() {
	w.woken = true
	if w.world.rules.lines && w.world.chance(w.world.check.cancels/20+1) && w.world.check.cancels > 0 {
		w.cancel()
	}
	if w.state == parked {
		w.resume()
	}
}

// resume has the goroutine run in a moment.
func (w *simWaiter) resume() {
	leaves := w.state == leaves
	w.state = runs
	serial := w.serial
	w.client.after(w.lines.moment(), func() {
		switch {
		case w.state != runs || w.serial != serial || w.client.dead:
		case leaves:
			w.leave()
		default:
			w.run()
		}
	})
}

// run is a turn of the loop of Group.inLine.
func (w *simWaiter) run() {
	if w.parks > 0 && w.canceled {
		w.leave()
		return
	}
	w.parks++
	t := w.lines.table.Turn(&w.Waiter)
	if t.Takes {
		w.take()
		return
	}
	if !t.Acts {
		w.park()
		return
	}
	step := t.Step
	table, c := &w.lines.table, w.client
	w.world.note("acts", c.index, int(step.Action), w.key)
	switch step.Action {
	case waiters.Attempt:
		w.state = attempts
		if w.Asks() {
			if w.back {
				w.endSoon()
			}
			return
		}
		if !w.submit() {
			w.did(table.Refused(&w.Waiter, 0))
		}
	case waiters.Leave:
		w.lines.depart(w.name, waiters.Departure{Is: true, First: step.First, Node: step.Node})
		w.did(table.Done(&w.Waiter))
	case waiters.Enter:
		w.state = asksNode
		w.lines.enter(w, step, false, func(e waiters.Entry, err error) {
			if err == errGivenUp || IsTimeout(err) { // the process may enter all the same
				w.lines.depart(w.name, waiters.Departure{Is: true, First: step.First, Node: step.Node})
			}
			if err != nil {
				w.failed(step, err)
				return
			}
			w.did(table.Entered(&w.Waiter, step.Node, e))
		})
	case waiters.Watch:
		w.state = asksNode
		w.lines.watch(w, step.Node, func(ttl time.Duration, err error) {
			if err != nil {
				w.failed(step, err)
				return
			}
			w.did(table.Watched(&w.Waiter, step.Node, ttl))
		})
	}
}

// failed tells the line that a node was of no use, unless the waiter has given up.
func (w *simWaiter) failed(step waiters.Step, err error) {
	switch {
	case err != errGivenUp:
		w.did(w.lines.table.Failed(&w.Waiter, step.Node))
	case w.world.rules.staysBusy:
		w.state = isDead // in the line
	case step.Action == waiters.Enter:
		w.did(w.lines.table.NotEntered(&w.Waiter, step.Node))
	default:
		w.did(w.lines.table.Done(&w.Waiter))
	}
}

// did is the end of an act.
func (w *simWaiter) did(due waiters.Due[*simWaiter]) {
	w.lines.change(w.name, due)
	w.resume()
}

// park waits until it is woken, or until Look.
func (w *simWaiter) park() {
	w.state = parked
	if w.woken {
		w.woken = false
		w.resume()
		return
	}
	parks := w.parks
	d := min(w.Look, w.lines.Now()+time.Hour)
	if w.Look == never {
		return
	}
	at := w.client.clock.truth(d) + time.Microsecond
	w.client.after(max(0, at-w.world.now()), func() {
		if w.state == parked && w.parks == parks {
			w.resume()
		}
	})
}

// prepare makes the next attempt's call.
func (w *simWaiter) prepare() {
	c := w.client
	w.attempt = w.world.check.newLock(c, w.key, w.ttl)
	w.attempt.loose = true
	op := &w.call.Op
	op.Kind, op.Key, op.Token, op.TTL, op.Absent = Acquire, []byte(w.name), tokenOf(w.attempt.number), w.ttl, 0
	if err := c.engine.check(op); err != nil {
		w.world.check.fail("once", "Check: "+err.Error())
	}
	c.propose(op, &w.proposal)
	w.unsent = false
	w.call.ended, w.call.over, w.back, w.asked = w.ended, false, false, w.world.now()
}

// submit begins an attempt.
func (w *simWaiter) submit() bool {
	c := w.client
	w.prepare()
	w.world.note("try", c.index, w.key, w.attempt.number)
	w.world.check.submitted(c, w.attempt, Acquire)
	var l list
	l.push(&w.call.Op)
	now := c.clock.Now()
	if err := c.engine.enqueueAll(l, now, bounded); err != nil {
		w.attempt.over = true
		return false
	}
	c.pending++
	w.calls = true
	c.engine.submittedNow(Acquire, now, nil)
	return true
}

// poll takes the end of the call in.
func (w *simWaiter) poll() bool {
	if !w.calls || len(w.call.done) == 0 {
		return false
	}
	<-w.call.done
	w.calls, w.back = false, true
	w.client.pending--
	if !w.call.over {
		w.world.check.votes(w.client, w.attempt, &w.call.Op, w.asked)
	}
	w.goesOn()
	return true
}

// goesOn wakes the goroutine that waits for the end of the call.
func (w *simWaiter) goesOn() {
	switch w.state {
	case alone, attempts:
		w.endSoon()
	case leaves:
		w.resume()
	}
}

// endSoon lets the goroutine see the result of its call.
func (w *simWaiter) endSoon() {
	state := w.state
	w.client.after(w.lines.moment(), func() {
		if w.state == state && !w.client.dead {
			w.attempted()
		}
	})
}

// attempted is the end of an attempt.
func (w *simWaiter) attempted() {
	c, call, l := w.client, w.call, w.attempt
	table := &w.lines.table
	w.back = false
	isAlone := w.state == alone
	w.Told()
	if w.unsent && !w.canceled { // there was no room for it beside the release
		if w.unsent = false; !w.submit() {
			w.did(table.Refused(&w.Waiter, 0))
		}
		return
	}
	if w.unsent = false; !call.over && call.Err == nil && c.clock.Now() < call.Until {
		l.validity, l.absent, l.loose = &validity{Validity: renewal.Begin(w.ttl, call.Until)}, call.Absent, false
		w.won = true
		w.world.check.tokened(l, call.Block, w.asked)
		w.proposal, w.tries = fencing.Proposal{}, 0
		lease := &simLease{lock: l, client: c}
		if !isAlone {
			passes := 0
			w.lines.change(w.name, table.Won(&w.Waiter, call.Until))
			if line := table.Find(w.name); line != nil {
				passes = line.Passes
			}
			w.world.check.won(w, passes)
		}
		h := &simHandle{lease: lease, ttl: w.ttl, since: w.world.now(), fence: l.block.First}
		if isAlone {
			w.world.check.wonAlone(w)
			w.hold(h)
			return
		}
		w.leaveWith(h)
		return
	}
	if !call.over && call.Err == nil {
		w.world.check.submitted(c, l, Release)
		c.engine.Late(&call.Op)
	}
	l.over = true
	again, closed := false, false
	if !call.over {
		again, closed = c.learn(&call.Op, &w.proposal, call.Err)
	}
	if again && w.tries < fenceTries && !w.canceled {
		if w.tries++; w.submit() {
			return
		}
	}
	w.proposal, w.tries = fencing.Proposal{}, 0
	var denied uint64
	if !call.over && call.Err == ErrTaken {
		for node := range c.fleet.links {
			if o, _ := call.Tally.Outcome(node); o == quorum.Denied {
				denied |= 1 << node
			}
		}
	}
	switch {
	case isAlone && (w.canceled || closed || call.over || call.Err == ErrClosed):
		w.pause()
	case isAlone:
		w.parks = 0
		if w.lines.usable == 0 {
			denied = 0
		}
		w.stand(denied)
	case call.over || closed || call.Err == ErrClosed:
		w.lines.change(w.name, table.Ended(&w.Waiter))
		w.leave()
	default:
		w.did(table.Refused(&w.Waiter, denied))
	}
}

// take is the end of a wait for a lock that was passed on.
func (w *simWaiter) take() {
	h := w.handed
	w.handed = nil
	if w.client.clock.Now() >= h.lease.lock.validity.until() && !w.world.rules.handsExpired {
		w.lines.release(h, true)
		w.stand(0)
		return
	}
	w.leaveWith(h)
}

// leave gives up.
func (w *simWaiter) leave() {
	if w.Leaves() && w.Asks() && !w.back {
		w.state = leaves
		return
	}
	w.leaveWith(nil)
}

// leaveWith is the end of an Acquire, with a lock or without.
func (w *simWaiter) leaveWith(h *simHandle) {
	table := &w.lines.table
	if w.Acts() {
		if w.Asks() && !w.unsent && !w.call.over && w.call.Err == nil {
			w.attempt.over = true
			w.world.check.submitted(w.client, w.attempt, Release)
			w.client.engine.Abandon(&w.call.Op)
		}
		if w.attempt != nil {
			w.attempt.over = true
		}
		w.lines.change(w.name, table.Ended(&w.Waiter))
	}
	handed := w.handed
	w.handed = nil
	w.world.check.departs(w)
	due := table.Remove(&w.Waiter)
	if w.world.rules.forgetsFirst && w.canceled {
		due.Wake = nil
	}
	w.lines.change(w.name, due)
	if handed != nil {
		if w.won {
			handed.lease.told = true
		}
		w.lines.release(handed, true)
	}
	w.parks = 0
	if h == nil {
		w.pause()
		return
	}
	w.hold(h)
}

// dies is the end of its process, or of its client.
func (w *simWaiter) dies() {
	w.world.check.departs(w)
	if w.attempt != nil {
		w.attempt.over = true
	}
	w.state = isDead
}
