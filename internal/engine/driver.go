package engine

import (
	"math"
	"sync"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/quorum"
)

// maxTurns is how many turns as the driver a submitter takes: its own, and some for
// operations that were submitted while it had the lock. Then the reader goes on.
// Without a bound a submitter might drive for others for ever.
const maxTurns = 4

// drive sends what waits, if the window is open and no other driver is at it. A
// caller that passes a Call and finds itself alone stays and reads its own
// replies.
//
// No operation is left waiting:
//  1. A submitter pushes, and then tries the lock. If that fails, there is a driver.
//  2. A driver gives the lock up, and then runs this loop's condition again.
//  3. So either the submitter gets the lock, or the driver sees what it pushed.
//  4. A driver that sleeps in the kernel has set a flag (alone) before it looked at the
//     queue a last time; the submitter wakes it.
func (e *Engine) drive(c *Call) {
	for turn := 0; e.queue.size.Load() > 0 && e.window.isOpen.Load() || e.queries.size.Load() > 0; turn++ {
		if !e.turnOf(c, turn) {
			return
		}
	}
}

// turnOf is one turn of drive. It returns false if another goroutine goes on.
func (e *Engine) turnOf(c *Call, turn int) bool {
	if !e.driver.TryLock() {
		if e.alone.Load() {
			e.fleet.Wake()
		}
		return false
	}
	if turn == maxTurns {
		e.unlock(true)
		return false
	}
	e.flush()
	if c != nil {
		e.readAlone(c)
	}
	e.unlock(false)
	return true
}

// submitted drives for an operation that was just queued, unless another goroutine
// is about to: the reader, which has woken callers and waits for them to submit, or
// the goroutine of callbacks, for operations that are not waited for. Were each to
// drive, the first would send its own operation alone, and the others would wait for
// that round trip.
//
// No operation is left waiting. A submitter pushes and then reads the deadline; the
// other goroutine clears the deadline and then reads the queue. If it is kept from
// that, the deadline passes, and the watchdog's tick sends what was left.
func (e *Engine) submitted(kind Kind, now time.Duration, c *Call) {
	if c != nil || now >= time.Duration(e.collectOps.Load()) {
		e.submittedNow(kind, now, c)
	}
}

// submittedNow is submitted for operations that must not wait for callbacks.
func (e *Engine) submittedNow(kind Kind, now time.Duration, c *Call) {
	if now < time.Duration(e.collectCalls.Load()) {
		return
	}
	if kind == Acquire && e.quorumUnavailable.Load() && !e.window.isOpen.Load() {
		e.turnOf(nil, 0) // it need not wait for the window: it is sent to no node
	}
	e.drive(c)
}

// lazyTimeout has the watchdog tick every millisecond.
const lazyTimeout = 4 * minTick

// DriveSoon sends operations without a waiting caller a little later: with the next operation
// of a caller, or at the watchdog's next tick, after a millisecond or two. A caller that takes
// another lock at once then has one batch and one round trip for both.
//
// Submitters that do not get the lock rely on the holder of the lock to drive. They have
// counted themselves in depth before they tried, so it is enough to look there.
func (e *Engine) DriveSoon() {
	if e.depth.Load() == 0 && e.driver.TryLock() {
		e.watchdog.see(lazyTimeout)
		e.unlock(false)
		if e.depth.Load() == 0 {
			return
		}
	}
	e.Drive()
}

// turn runs f as the driver, with the lock held, sends what waits and unlocks. Then it
// drives, for operations that were submitted meanwhile.
func (e *Engine) turn(f func()) {
	f()
	e.flush()
	e.unlock(false)
	e.drive(nil)
}

// unlock gives the driver lock up. It arms the fleet, so that arrivals wake the reader,
// while a round is undecided. It does so too while the watchdog sleeps, since an arrival
// then means that a connection has ended. Otherwise the watchdog reads stragglers. If
// the reader is to drive, it is woken at once.
func (e *Engine) unlock(handOver bool) {
	fleet := e.fleet // Start sets it with the lock held
	if fleet != nil && !e.armed && (handOver || e.undecided > 0 || len(e.queries.asked) > 0 || e.listeners.Load() > 0 || !e.watchdog.awake) {
		e.armed = true
		fleet.Arm()
	}
	e.driver.Unlock()
	if handOver && fleet != nil {
		fleet.Wake()
	}
	if e.callbacks.waiting.Load() > 0 {
		e.callbacks.wake()
	}
}

// DriverLock is the lock that the fleet's owner holds.
func (e *Engine) DriverLock() sync.Locker { return (*driverLock)(e) }

// driverLock is the driver lock for dialers. Like each holder, they drive after they
// have unlocked it, for operations that were submitted meanwhile.
type driverLock Engine

func (l *driverLock) Lock() { l.driver.Lock() }

func (l *driverLock) Unlock() {
	(*Engine)(l).unlock(false)
	(*Engine)(l).drive(nil)
}

// flush sends what was queued when it began, while the window is open. What comes
// later, because operations that fail at once are submitted again for example, is
// for the next turn: between two turns dialers, the reader and Stats get the lock.
func (e *Engine) flush() {
	e.complete() // before any batch that they refer to is used again
	e.ask()
	left := int(e.queue.size.Load())
	if left == 0 {
		return
	}
	if nonvoters := e.nonvoters(); e.quorumUnavailable.Load() {
		left = e.failAcquires(left, nonvoters) // they are in front
	}
	for left > 0 && e.window.isOpen.Load() {
		first, n := e.queue.take(min(left, e.window.limit()), maxBatchKeys)
		if n == 0 {
			break // it was cancelled
		}
		left += e.send(first, n) - n
		e.complete()
	}
	e.complete()
}

// LacksQuorum reports whether too few nodes can vote for an acquire to win: it is failed without being sent.
func (e *Engine) LacksQuorum() bool {
	if !e.quorumUnavailable.Load() { // it is noted with each acquire
		return false
	}
	e.driver.Lock()
	e.turn(func() { e.nonvoters() })
	return e.quorumUnavailable.Load()
}

// nonvoters returns the nodes without a vote: they are down or quarantined. If the
// others are no quorum, no acquire can win.
func (e *Engine) nonvoters() quorum.Set {
	nonvoters := e.fleet.Away() | e.fleet.Quarantined()
	if away := e.quorum.Blocks(nonvoters); away != e.quorumUnavailable.Load() {
		e.quorumUnavailable.Store(away)
	}
	return nonvoters
}

// send writes a batch of n operations to all nodes, less those that are deferred.
// It returns their number.
func (e *Engine) send(first *Op, n int) (deferred int) {
	b := e.batch()
	forms := e.fleet.Forms()
	later := e.planner.plan(b, first, n, forms, e.window.size == 1 && anyScript(forms))
	e.queue.putBack(later)
	e.noteTTL(b.longest)
	b.quarantined = e.fleet.Quarantined()
	e.counters.send(n - later.n)
	now := e.clock.Now()
	b.sentAt = now
	e.watchdog.see(b.soonest)
	b.deadline, b.latest = now+b.soonest, now+b.latest
	away := e.fleet.Away()
	for i := range b.rounds {
		r := &b.rounds[i]
		op := r.op
		r.waited = min(now-op.start, mostPatience*r.timeout)
		if op.Kind == Acquire {
			op.Absent = away
		}
		op.advance(inFlight) // from here on it may be cancelled
	}
	e.undecided += b.undecided
	e.unanswered++
	if !b.listed {
		b.listed = true
		e.inFlight = append(e.inFlight, b)
	}
	e.window.enter(b)
	e.fleet.Send(&b.first.Batch)
	return later.n
}

// failAcquires takes the acquires out of the n oldest operations in the queue, also
// while the window is shut, and returns how many others there are. Sent, acquires
// would only have to be cleaned up after, thousands of times a second.
func (e *Engine) failAcquires(n int, nonvoters quorum.Set) (left int) {
	e.watchdog.see(maxTimeout) // it looks after callbacks, too
	var others list
	first, _ := e.queue.take(n, math.MaxInt)
	for op := first; op != nil; {
		next := op.next
		if op.Kind == Acquire {
			e.fail(op, nonvoters)
		} else {
			others.push(op)
		}
		op = next
	}
	e.queue.putBack(others)
	return others.n
}

// fail decides an acquire that is sent to no node.
func (e *Engine) fail(op *Op, nonvoters quorum.Set) {
	op.Tally.Reset(e.quorum)
	for node := range e.nodes {
		if !nonvoters.Has(node) {
			continue
		}
		err := e.fleet.Fault(node)
		if err == nil {
			err = conn.ErrQuarantined
		}
		op.Tally.Record(node, quorum.Failed)
		op.Failures = append(op.Failures, Failure{node, err})
		e.observe(node, Acquire, quorum.Failed, err)
	}
	op.Err, op.Absent = ErrNoQuorum, quorum.Everything
	op.advance(decided)
	e.decided.push(op)
}

// aloneFor is how long a lone caller waits in the kernel for its own replies before
// it parks as others do; in that time no other goroutine can be the driver. It is
// not shorter because a timer that is due before the kernel's next tick has to be
// programmed into the hardware for each wait, and in a virtual machine that costs
// microseconds: with 300 us in its place a lone caller's median was 387 us instead
// of 330 us.
const aloneFor = 5 * time.Millisecond

// readAlone lets the caller of c, which holds the driver lock, read its own replies,
// provided that no other operation is under way. An operation that is submitted
// meanwhile waits for a closed window as always. Where the window is open, on a slow
// network, its submitter wakes the caller, which sends what there is and leaves
// the rest to the reader.
//
// No newcomer can be missed: it pushes and then reads alone, and here alone is set
// before the queue is looked at.
func (e *Engine) readAlone(c *Call) {
	own := 1 + c.along
	if e.depth.Load() != own || !e.fleet.CanBlock() || e.peers.crowd(&e.depth) {
		return
	}
	e.alone.Store(true)
	defer e.alone.Store(false)
	limit := min(aloneFor, c.Timeout)
	for left := limit; len(c.done) == 0 && left > 0 && !IsClosed(c.ended); {
		if e.flush(); e.window.isOpen.Load() && e.depth.Load() > own {
			return
		}
		e.fleet.Sweep(left)
		if e.complete(); e.callbacks.waiting.Load() > 0 {
			e.callbacks.wake() // this caller may keep the lock for long
		}
		left = limit - (e.clock.Now() - c.start)
	}
}
