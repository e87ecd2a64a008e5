package engine

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// maxTurns is how many turns as the driver a submitter takes: its own, and some for operations submitted while it had
// the lock. Then the reader goes on. Without a bound a submitter might drive for others for ever.
const maxTurns = 4

// driver sends and reads. It is one goroutine at a time, the holder of its lock.
type driver struct {
	peers     *Peers
	onPanic   func(v any, stack []byte)
	queue     queue
	queries   queries
	callbacks callbacks
	counters  counters

	collectOps   atomic.Int64 // until this instant another goroutine drives for operations without a waiting caller; 0: none does
	collectCalls atomic.Int64 // the same for all operations
	listeners    atomic.Int64 // callers waiting for pushes

	alone     atomic.Bool // the driver waits in the kernel, or is about to
	lone      atomic.Bool // the last call was that of a lone caller
	lock      sync.Mutex  // the driver lock; the fields below belong to its holder
	armed     bool        // the reader is woken by the next arrival
	armedLate bool        // likewise, except from early nodes
	nodes     nodes
	rounds    rounds
	keeping   time.Duration // how long lone callers have waited in the kernel since the last one that parked

	unyielding int // batches without yield; the reader's

	routines sync.WaitGroup
}

func (d *driver) init(cfg *Config) {
	d.peers, d.onPanic = cfg.Peers, cfg.OnPanic
	d.queue.limit = cfg.MaxWaiting
	d.callbacks.init(cfg.OnVote)
	d.nodes.init(cfg.Clock, cfg.Quorum)
	d.queries.init(&d.nodes, &d.queue.depth, cfg.MaxInFlight)
	l := &d.rounds
	l.ledger = ledger{nodes: &d.nodes, observer: cfg.Observer, counters: &d.counters, callbacks: &d.callbacks}
	if cfg.Observer == nil {
		l.observer = unobserved{}
	}
	l.window.init(cfg.MaxInFlight)
	l.fence, l.queue = cfg.Fence, &d.queue
	l.cleanups.queue, l.cleanups.nodes = &d.queue, &d.nodes
	l.planner.init()
}

// drive sends what waits, if the window is open and no other driver is at it. A caller with a Call that finds itself
// alone stays and reads its own replies.
//
// No operation is left waiting:
//  1. A submitter pushes, and then tries the lock. If that fails, there is a driver.
//  2. A driver gives the lock up, and then runs this loop's condition again.
//  3. So either the submitter gets the lock, or the driver sees what it pushed.
//  4. A driver that sleeps in the kernel has set a flag (alone) before it looked at the
//     queue a last time; the submitter wakes it.
func (d *driver) drive(c *Call) {
	for turn := 0; d.queue.size.Load() > 0 && d.rounds.window.isOpen.Load() || d.queries.size.Load() > 0; turn++ {
		if !d.turnOf(c, turn) {
			return
		}
	}
}

// turnOf is one turn of drive. It returns false if another goroutine goes on.
func (d *driver) turnOf(c *Call, turn int) bool {
	if !d.lock.TryLock() {
		if d.alone.Load() {
			d.nodes.Wake()
		}
		return false
	}
	if turn == maxTurns {
		d.unlock(true)
		return false
	}
	d.flush()
	if c == nil || d.readAlone(c) {
		d.unlock(false)
	}
	return true
}

// submitted drives for operations just queued, unless another goroutine is about to: the reader, waiting for woken
// callers to submit. Submit leaves its operations to the goroutine of callbacks likewise, until collectOps. Were each to
// drive, the first would send its own operation alone, and the others would wait for its round trip.
//
// No operation is left waiting. A submitter pushes and then reads the deadline; the other goroutine clears the
// deadline and then reads the queue. If it is kept from this, the deadline passes, and the watchdog's tick sends the
// rest.
func (d *driver) submitted(kind Kind, now clock.Instant, c *Call) {
	if now < clock.Instant(d.collectCalls.Load()) {
		return
	}
	if kind == Acquire && d.nodes.lacking.Load() && !d.rounds.window.isOpen.Load() {
		d.turnOf(nil, 0) // it need not wait for the window: it is sent to no node
	}
	d.drive(c)
}

// turn runs f as the driver, with the lock held, sends what waits and unlocks. Then it drives, for operations
// submitted meanwhile.
func (d *driver) turn(f func()) {
	f()
	d.flush()
	d.unlock(false)
	d.drive(nil)
}

// unlock gives the driver lock up. While a round is undecided it arms the fleet, so arrivals wake the reader: those of
// late nodes alone, while the answers of early ones decide nothing (isFresh). It does so too while the watchdog sleeps:
// an arrival then means the end of a connection. Otherwise the watchdog reads stragglers. If the reader is to drive, it
// is woken at once.
func (d *driver) unlock(handOver bool) {
	fleet := d.nodes.Fleet // Start sets it with the lock held
	if fleet != nil && !d.armed {
		all := handOver || len(d.queries.asked) > 0 || d.listeners.Load() > 0 || !d.nodes.pulse.awake
		switch late := d.nodes.undeciding && d.rounds.isFresh(); {
		case all, d.rounds.undecided > 0 && !late:
			d.armed = true
			fleet.Arm(false)
		case d.rounds.undecided > 0 && !d.armedLate:
			d.armedLate = true
			fleet.Arm(true)
		}
	}
	d.lock.Unlock()
	if handOver && fleet != nil {
		fleet.Wake()
	}
	if d.callbacks.waiting.Load() > 0 {
		d.callbacks.wake()
	}
}

// flush sends what was queued when it began, while the window is open, up to a bound: nodes that are down end a batch
// at once. Later operations, such as failed ones submitted again at once, are for the next turn: between two turns
// dialers, the reader and Stats get the lock.
func (d *driver) flush() {
	d.complete() // before any of their batches is used again
	d.queries.ask()
	left := min(int(d.queue.size.Load()), scanWaiting)
	if left == 0 {
		return
	}
	nonvoters, lacking := d.nodes.nonvoters(), d.nodes.lacking.Load()
	if lacking {
		d.rounds.checkWaiting(left, nonvoters)
	}
	for left > 0 && d.rounds.window.isOpen.Load() {
		ops := d.queue.take(min(left, d.rounds.window.limit()), maxBatchKeys, !lacking)
		if ops.n == 0 {
			break // it was cancelled, or is an acquire in vain
		}
		left += d.rounds.send(ops) - ops.n
		d.complete()
	}
	d.complete()
}

// aloneFor is how long a lone caller waits in the kernel for its own replies before it parks as others do. In this time
// no other goroutine can be the driver. A shorter time would cost more. A timer due before the kernel's next tick is
// programmed into the hardware for each wait, and this takes microseconds in a virtual machine: with 300 us in its
// place a lone caller's median was 387 us instead of 330 us.
const aloneFor = 5 * time.Millisecond

// keptFor is how long lone callers wait in the kernel, one wait after another, before one parks. A goroutine that waits
// there keeps its processor, unless the runtime notices, and the runtime looks every 10 ms. So with one processor a
// caller in a loop would keep all other goroutines from theirs: an echo on another connection took 18 ms. When it parks
// they have it, and the network is polled for them. It is not shorter because each park costs CPU: with 500 us in its
// place a pair of a lone caller cost 1.3 times as much.
const keptFor = 2 * time.Millisecond

// readAlone lets the caller of c, the holder of the driver lock, read its own replies, provided no other operation is
// under way. An operation submitted meanwhile waits for a closed window as always. Where the window is open, on a
// slow network, its submitter wakes the caller. The caller then sends what there is and leaves the rest to the
// reader. It returns false if another goroutine has the driver lock.
//
// Goroutines that are ready to run do so first: they may be about to submit. With one processor they would have to wait
// for this caller, time and again. The lock is free meanwhile, and no reader is woken by replies: the goroutine that
// has the lock next arms the fleet when it unlocks, unless it is this one.
//
// No newcomer can be missed: it pushes and then reads alone, and here alone is set
// before the queue is looked at.
func (d *driver) readAlone(c *Call) (isDriver bool) {
	own := 1 + c.along
	if d.queue.depth.Load() != own {
		return true
	}
	d.lone.Store(own == 1)
	if !d.nodes.CanBlock() || d.peers.crowd(&d.queue.depth) {
		return true
	}
	if d.keeping >= keptFor {
		d.keeping = 0
		return true
	}
	d.lock.Unlock()
	runtime.Gosched()
	if !d.lock.TryLock() {
		return false
	}
	if d.queue.depth.Load() != own {
		return true
	}
	d.alone.Store(true)
	defer d.alone.Store(false)
	limit := min(aloneFor, c.Timeout)
	if at := c.limit.At; at != 0 {
		limit = min(limit, at.Sub(c.start))
	}
	left := limit
	for len(c.done) == 0 && left > 0 && !IsClosed(c.limit.Done) && d.nodes.CanBlock() {
		d.flush()
		if d.rounds.window.isOpen.Load() && d.queue.depth.Load() > own {
			break
		}
		d.nodes.Sweep(left)
		d.complete()
		if d.callbacks.waiting.Load() > 0 {
			d.callbacks.wake() // this caller may keep the lock for long
		}
		left = limit - d.nodes.clock.Now().Sub(c.start)
	}
	d.keeping += limit - left
	return true
}

// complete hands every operation with a verdict back, and returns the number of calls among them.
func (d *driver) complete() (calls int) {
	calls, ops, now := d.rounds.complete()
	if ops.n > 0 {
		d.collectOps.Store(int64(now.Add(collectTime(ops.n))))
		d.callbacks.complete(&ops)
	}
	return calls
}
