package engine

import (
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

	collectCalls atomic.Int64 // until this instant another goroutine drives for all operations; 0: none does
	listeners    atomic.Int64 // callers waiting for pushes

	alone     atomic.Bool // the driver waits in the kernel, or is about to
	lone      atomic.Bool // the last call was that of a lone caller
	lock      sync.Mutex  // the driver lock; the fields below belong to its holder
	armed     bool        // the reader is woken by the next arrival
	armedLate bool        // likewise, except from early nodes
	nodes     nodes
	ledger    ledger
	keeping   time.Duration // how long lone callers have waited in the kernel since the last one that parked

	unyielding int // batches without yield; the reader's

	routines sync.WaitGroup
}

func (d *driver) init(cfg *Config) {
	d.peers, d.onPanic = cfg.Peers, cfg.OnPanic
	d.queue.limit, d.ledger.limitAt = cfg.MaxWaiting, clock.Never
	d.queue.soonest.Store(int64(clock.Never))
	d.callbacks.init()
	d.nodes.init(cfg.Clock, cfg.Quorum)
	d.queries.init(&d.nodes, &d.queue.depth, cfg.MaxInFlight)
	l := &d.ledger
	l.nodes, l.queue, l.counters, l.callbacks = &d.nodes, &d.queue, &d.counters, &d.callbacks
	l.observer, l.onVote, l.fence = cfg.Observer, cfg.OnVote, cfg.Fence
	if cfg.Observer == nil {
		l.observer = unobserved{}
	}
	l.window.init(cfg.MaxInFlight)
	l.planner.init()
}

// drive sends what waits, if the window is open and no other driver is at it. A goroutine that finds itself alone stays
// and reads its own replies.
//
// No operation is left waiting:
//  1. A submitter pushes, and then tries the lock. If that fails, there is a driver.
//  2. A driver gives the lock up, and then runs this loop's condition again.
//  3. So either the submitter gets the lock, or the driver sees what it pushed.
//  4. A driver that sleeps in the kernel has set a flag (alone) before it looked at the
//     queue a last time; the submitter wakes it.
func (d *driver) drive(by lone) {
	for turn := 0; d.queue.size.Load() > 0 && d.ledger.window.isOpen.Load() || d.queries.size.Load() > 0; turn++ {
		if !d.turnOf(by, turn) {
			return
		}
	}
}

// turnOf is one turn of drive. It returns false if another goroutine goes on.
func (d *driver) turnOf(by lone, turn int) bool {
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
	if by.own == 0 || d.readAlone(by) {
		d.unlock(false)
	}
	return true
}

// submitted drives for operations just queued, unless another goroutine is about to: the reader, waiting for woken
// callers to submit. Submit leaves its operations to the goroutine of callbacks likewise (callbacks.collects). Were each to
// drive, the first would send its own operation alone, and the others would wait for its round trip.
//
// No operation is left waiting. A submitter pushes and then reads the deadline; the other goroutine clears the
// deadline and then reads the queue. If it is kept from this, the deadline passes, and the watchdog's tick sends the
// rest.
func (d *driver) submitted(kind Kind, now clock.Instant, by lone) {
	if now < clock.Instant(d.collectCalls.Load()) {
		return
	}
	if kind == Acquire && d.nodes.noQuorum.Load() && !d.ledger.window.isOpen.Load() {
		d.turnOf(lone{}, 0) // it need not wait for the window: it is sent to no node
	}
	d.drive(by)
}

// turn runs f as the driver, with the lock held, sends what waits and unlocks. Then it drives, for operations
// submitted meanwhile.
func (d *driver) turn(f func()) {
	f()
	d.flush()
	d.unlock(false)
	d.drive(lone{})
}

// unlock gives the driver lock up. While a round is undecided it arms the fleet, so arrivals wake the reader: those of
// late nodes alone, while the answers of early ones decide nothing (isFresh). It does so too while the watchdog sleeps:
// an arrival then means the end of a connection. Otherwise the watchdog reads stragglers. If the reader is to drive, it
// is woken at once.
func (d *driver) unlock(handOver bool) {
	fleet := d.nodes.Fleet // Start sets it with the lock held
	if fleet != nil && !d.armed {
		all := handOver || len(d.queries.asked) > 0 || d.listeners.Load() > 0 || !d.nodes.pulse.awake.Load()
		switch late := d.nodes.undeciding && d.ledger.isFresh(); {
		case all, d.ledger.undecided > 0 && !late:
			d.armed = true
			fleet.Arm(false)
		case d.ledger.undecided > 0 && !d.armedLate:
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
	d.ledger.endLimits()
	d.ledger.complete() // before any of their batches is used again
	d.send()
	d.queries.ask() // behind the operations: see queries.follow
	d.ledger.complete()
}

// send sends operations.
func (d *driver) send() {
	left := min(int(d.queue.size.Load()), scanWaiting)
	if left == 0 {
		return
	}
	nonvoters, lacking := d.nodes.nonvoters(), d.nodes.noQuorum.Load()
	if lacking {
		d.ledger.checkWaiting(left, nonvoters)
	}
	for left > 0 && d.ledger.window.isOpen.Load() {
		ops := d.queue.take(min(left, d.ledger.window.limit()), maxBatchKeys, !lacking)
		if ops.n == 0 {
			break // it was cancelled, or is an acquire in vain
		}
		left += d.ledger.send(ops) - ops.n
		d.ledger.complete()
	}
}
