package engine

import (
	"math/bits"
	"runtime"
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
// No operation can be left behind:
//  1. A submitter pushes, and then tries the lock. If that fails, there is a driver.
//  2. A driver gives the lock up, and then runs this loop's condition again.
//  3. So either the submitter gets the lock, or the driver sees what it pushed.
//  4. A driver that sleeps in the kernel has said so (alone) before it looked at the
//     queue a last time; the submitter wakes it.
func (e *Engine) drive(c *Call) {
	for turn := 0; e.queue.size.Load() > 0 && e.window.isOpen.Load() && !e.callbacks.collecting.Load(); turn++ {
		if !e.driver.TryLock() {
			if e.alone.Load() {
				e.fleet.Wake()
			}
			return
		}
		if turn == maxTurns {
			e.unlock(true)
			return
		}
		e.flush()
		if c != nil {
			e.readAlone(c)
		}
		e.unlock(false)
	}
}

// turn runs f as the driver, the lock being held, sends what waits and gives the
// lock up. It then looks after what was submitted meanwhile.
func (e *Engine) turn(f func()) {
	f()
	e.flush()
	e.unlock(false)
	e.drive(nil)
}

// unlock gives the driver lock up. The reader is to be woken by what arrives if a
// caller waits for it; or if nothing is asked at all, for then it is news of a
// connection that has ended. Stragglers are left to the watchdog. The reader is
// woken at once where it is to drive, or has callbacks to call; while it collects it
// is awake.
func (e *Engine) unlock(handOver bool) {
	wake := handOver || e.callbacks.waiting.Load() > 0 && !e.callbacks.collecting.Load()
	if e.fleet != nil && !e.armed && (wake || e.undecided > 0 || !e.watchdog.awake) {
		e.armed = true
		e.fleet.Arm()
	}
	e.driver.Unlock()
	if wake && e.fleet != nil {
		e.fleet.Wake()
	}
}

// DriverLock is the lock that the fleet's owner holds.
func (e *Engine) DriverLock() sync.Locker { return (*driverLock)(e) }

// driverLock is the driver lock for those who do not drive, the dialers. Like every
// holder they look after what was submitted meanwhile.
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
	for left := int(e.queue.size.Load()); left > 0 && e.window.isOpen.Load(); {
		first, n := e.queue.take(min(left, e.window.limit()), maxBatchKeys)
		if n == 0 {
			return // it was cancelled
		}
		left -= n
		blind := e.fleet.Away() | e.fleet.Quarantined()
		if bits.OnesCount64(blind) > quorum.Tolerates(e.nodes) {
			first, n = e.failAcquires(first, blind)
		}
		if n > 0 {
			left += e.send(first, n)
		}
		e.complete()
	}
}

// send writes a batch of n operations to all nodes, less those that are deferred,
// whose number it returns.
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
		op := b.rounds[i].op
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
	if b.extends {
		e.extending.add(b)
	}
	e.window.enter(b)
	e.fleet.Send(&b.first.Batch)
	return later.n
}

// failAcquires takes the acquires out of a list, where so many nodes have no vote
// that none can win: they are down, or quarantined. Sent, they would only have to
// be cleaned up after, thousands of times a second.
func (e *Engine) failAcquires(first *Op, blind uint64) (rest *Op, n int) {
	e.watchdog.see(maxTimeout) // it looks after callbacks, too
	var others list
	for op := first; op != nil; {
		next := op.next
		if op.Kind == Acquire {
			e.fail(op, blind)
		} else {
			others.push(op)
		}
		op = next
	}
	return others.first, others.n
}

// fail decides an acquire that is sent to no node.
func (e *Engine) fail(op *Op, blind uint64) {
	op.Tally.Reset(e.nodes)
	for node := range e.nodes {
		if blind>>uint(node)&1 == 0 {
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
	op.Err, op.Absent = ErrNoQuorum, ^uint64(0)
	op.advance(idle)
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
// meanwhile waits behind a closed window as always. Behind an open one, on a slow
// network, its submitter wakes the caller, which sends what there is and leaves
// the rest to the reader.
//
// No newcomer can be missed: it pushes and then reads alone, and here alone is set
// before the queue is looked at.
func (e *Engine) readAlone(c *Call) {
	if e.depth.Load() != 1 || !e.fleet.CanBlock() {
		return
	}
	e.alone.Store(true)
	defer e.alone.Store(false)
	limit := min(aloneFor, c.Timeout)
	for left := limit; len(c.done) == 0 && left > 0 && !isClosed(c.ended); {
		if e.flush(); e.window.isOpen.Load() && e.depth.Load() != 1 {
			return
		}
		e.fleet.Sweep(left)
		e.complete()
		left = limit - (e.clock.Now() - c.start)
	}
}

// read is the reader goroutine: it sleeps until replies arrive that a caller
// waits for, or until a driver wakes it because callbacks or operations wait.
func (e *Engine) read(number uint64) {
	defer e.endReader(number)
	for e.fleet.Wait() {
		if !e.receive(number, yield) {
			return
		}
	}
	e.driver.Lock() // Close is at work until it gives the lock up
	e.driver.Unlock()
	e.callBack(number)
}

// endReader counts the reader as ended, unless another has taken its place.
func (e *Engine) endReader(number uint64) {
	if e.callbacks.isReader(number) {
		e.routines.Done()
	}
}

// receive reads what has arrived, hands the results to their callers and sends
// what those have submitted by then. It returns false if the reader was replaced.
//
// The driver lock is given up while callers run, and collecting is set instead: they
// queue, and one batch carries what they submit. Were each to drive, the first
// would send its own operation alone, and the others would wait for that round
// trip. No operation is left waiting: a submitter pushes and then reads
// collecting; the reader clears collecting and then reads the queue. If a callback
// does not return, the watchdog clears it.
func (e *Engine) receive(number uint64, yield func(q *queue, calls int)) bool {
	e.driver.Lock()
	e.armed = false
	e.fleet.Sweep(0)
	calls, alone := e.complete(), e.depth.Load() == 0
	if calls > 0 && !(calls == 1 && alone) || e.callbacks.waiting.Load() > 0 {
		e.callbacks.collecting.Store(true)
		e.driver.Unlock()
		if !e.callBack(number) {
			return false
		}
		if calls > 0 {
			yield(&e.queue, calls)
		}
		e.callbacks.collecting.Store(false)
		e.driver.Lock()
	}
	e.turn(func() {})
	return true
}

// maxYields bounds yield: on a machine that is busy with other things, each can
// take long.
const maxYields = 8

// yield lets the callers that were just completed run before the next batch is
// written, since most of them submit again at once: to go on with those that
// happen to have been waiting would split the callers into two camps, each of
// which waits for the other's round trip.
func yield(q *queue, calls int) {
	before := q.size.Load()
	goal := before + int64(calls)
	for i := range maxYields {
		runtime.Gosched()
		now := q.size.Load()
		if now >= goal || i > 0 && now == before {
			return // all are back, or no more come
		}
		before = now
	}
}
