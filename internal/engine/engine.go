package engine

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/quorum"
)

// Bounds of one batch. Larger ones gain nothing: by then a system call costs
// little next to what it carries.
const (
	maxBatchOps  = 1024
	maxBatchKeys = 256 << 10 // bytes of keys
)

// Fleet is what the engine needs of the nodes; *conn.Fleet is one. Its contract
// is that of package conn.
type Fleet interface {
	Len() int
	Dialects() []conn.Dialect
	Dialect(node int) conn.Dialect
	Guarded() uint64
	Away() uint64
	Outlive(d time.Duration)
	Unlearn(node int, d conn.Dialect)
	Send(b *conn.Batch)
	SendTo(node int, b *conn.Batch)
	Sweep(d time.Duration)
	Check()
	CanBlock() bool
	Wake()
	Arm()
	Wait() bool
	Close()
	Drain()
}

// Config is what an [Engine] needs to know.
type Config struct {
	Clock      clock.Clock
	MaxWaiting int           // operations that may wait to be sent
	MaxTTL     time.Duration // of any operation; 0 is the limit MaxTTL
	Timeout    time.Duration // for the nodes to answer; 0 means it follows from the TTL
	// OnVote hears of every vote as it comes, with the role held; nil is
	// nobody. An err is there where the vote failed.
	OnVote func(node int, kind Kind, o quorum.Outcome, err error)
}

// Engine carries operations to the nodes of one client.
type Engine struct {
	clock   clock.Clock
	timeout time.Duration
	maxTTL  time.Duration
	onVote  func(node int, kind Kind, o quorum.Outcome, err error)
	fleet   Fleet
	nodes   int
	quorum  int

	queue queue
	depth atomic.Int64 // operations submitted by callers and not yet completed

	alone     atomic.Bool // the driver waits in the kernel, or is about to
	role      sync.Mutex  // the driver; everything below is the driver's
	gate      gate
	encoder   encoder
	flying    []*batch // all with undecided rounds, and some without until the next tick
	newest    *batch   // the last one that was sent
	free      []*batch
	kept      int           // bytes of their buffers
	settled   list          // operations with a verdict, to be completed
	undecided int           // rounds, over all batches
	unsettled int           // batches that a node still owes replies for
	armed     bool          // the reader is woken by the next arrival
	longest   time.Duration // TTL that was sent
	debts     [quorum.MaxNodes]debts
	operands  operands
	counters  counters

	watchdog watchdog
	closing  atomic.Bool
	calls    sync.Pool     // of *Call
	cleanups sync.Pool     // of *cleanup
	quiet    chan struct{} // rung while closing, when the last batch settles
	routines sync.WaitGroup
}

// New makes an engine; [Engine.Start] gives it its nodes.
func New(cfg Config) *Engine {
	e := &Engine{clock: cfg.Clock, timeout: cfg.Timeout, onVote: cfg.OnVote, quiet: make(chan struct{}, 1)}
	e.maxTTL = cmp.Or(cfg.MaxTTL, MaxTTL)
	e.queue.limit = cfg.MaxWaiting
	e.gate.init()
	e.encoder.init()
	e.watchdog.init()
	return e
}

// Role is the lock that the fleet's owner holds.
func (e *Engine) Role() sync.Locker { return (*role)(e) }

// role is the driver's role for those who do not drive, the dialers. Like every
// holder they look after what was submitted meanwhile.
type role Engine

func (r *role) Lock() { r.role.Lock() }

func (r *role) Unlock() {
	(*Engine)(r).leave()
	(*Engine)(r).drive(nil)
}

// Start begins the work on a fleet that was made with this engine's Role.
func (e *Engine) Start(fleet Fleet) {
	e.role.Lock()
	e.take(fleet)
	e.leave()
	e.routines.Add(2)
	go e.read()
	go e.watch()
}

func (e *Engine) take(fleet Fleet) {
	e.fleet, e.nodes, e.quorum = fleet, fleet.Len(), quorum.Size(fleet.Len())
}

// Submit queues op and sees to it that it is sent. It does not block and does
// not allocate; op.Done hears of the result, possibly before Submit returns.
// With an error (ErrClosed, ErrBusy, or what is wrong with op) nothing was queued.
func (e *Engine) Submit(op *Op) error {
	if err := e.enqueue(op); err != nil {
		return err
	}
	e.drive(nil)
	return nil
}

func (e *Engine) enqueue(op *Op) error {
	if err := e.Check(op); err != nil {
		op.Err, op.Until = err, never
		return err
	}
	op.begin(e.clock.Now())
	e.depth.Add(1)
	if err := e.queue.push(op, false); err != nil {
		op.Err, op.Until = err, never // as it was not begun, it ends nothing
		e.depth.Add(-1)
		e.Note(op.Kind, err)
		return err
	}
	return nil
}

// Cancel takes op back from the engine. It returns false if it is too late: op
// is completed, or is about to be. Otherwise op is the caller's again and will
// not be completed; if it was an acquire that may have reached a node, its
// release is on the way.
func (e *Engine) Cancel(op *Op) bool {
	sent := false
	for !sent && !e.queue.remove(op) {
		s := op.awaitSent()
		if s&phaseMask == queued {
			continue // it was held back from its batch
		}
		if s&phaseMask != flying || !op.claim(s) {
			return false
		}
		sent = true
	}
	e.depth.Add(-1)
	e.Note(op.Kind, context.Canceled)
	if sent && op.Kind == Acquire {
		e.Abandon(op)
	}
	return true
}

// drive sends what waits, if the gate is open and nobody else is at it. A
// caller that passes a Call and finds itself alone stays and reads its own
// replies.
//
// No operation can be left behind: a submitter that fails to get the role has
// pushed before it tried, and whoever holds the role runs this loop's condition
// again after giving it up. One that is asleep in the kernel meanwhile has said so
// before it looked at the queue a last time, and is woken.
func (e *Engine) drive(c *Call) {
	for e.queue.size.Load() > 0 && e.gate.isOpen.Load() {
		if !e.role.TryLock() {
			if e.alone.Load() {
				e.fleet.Wake()
			}
			return
		}
		e.serve(c)
	}
}

// serve is one turn as the driver; the role is held and is given up, also by a
// callback's panic.
func (e *Engine) serve(c *Call) {
	defer e.leave()
	e.flush()
	if c != nil {
		e.readAlone(c)
	}
}

// leave gives up the role. The reader is to be woken by what arrives if somebody
// waits for it; or if nothing is asked at all, for then it is news of a
// connection that has ended. Stragglers are left to the watchdog.
func (e *Engine) leave() {
	if e.settled.first != nil {
		// A callback has panicked on its way through here. What it kept from
		// being completed is completed by somebody who is not unwinding.
		e.routines.Add(1)
		go e.rescue()
	}
	if e.fleet != nil && !e.armed && (e.undecided > 0 || !e.watchdog.awake) {
		e.armed = true
		e.fleet.Arm()
	}
	e.role.Unlock()
}

func (e *Engine) rescue() {
	defer e.routines.Done()
	e.role.Lock()
	e.turn(func() {}) // which completes first of all
}

// turn runs f as the driver, the role being held, and then looks after what was
// submitted meanwhile.
func (e *Engine) turn(f func()) {
	func() {
		defer e.leave()
		f()
		e.flush()
	}()
	e.drive(nil)
}

// flush sends what waits while the gate is open.
func (e *Engine) flush() {
	e.complete() // before any batch that they refer to is used again
	for e.gate.isOpen.Load() {
		first, n := e.queue.take(e.gate.limit(), maxBatchKeys)
		if first == nil {
			return
		}
		b := e.batch()
		dialects := e.fleet.Dialects()
		held := e.encoder.encode(b, first, n, dialects, e.gate.window == 1 && anyScript(dialects))
		e.queue.putBack(held)
		e.outlive(b.longest)
		b.guarded = e.fleet.Guarded()
		e.counters.send(n - held.n)
		now := e.clock.Now()
		b.sentAt = now
		e.watchdog.see(b.deadline)
		b.deadline += now
		away := e.fleet.Away()
		for i := range b.rounds {
			op := b.rounds[i].op
			if op.Kind == Acquire {
				op.Absent = away
			}
			op.advance(flying) // from here on it may be cancelled
		}
		e.undecided += b.undecided
		e.unsettled++
		if !b.listed {
			b.listed = true
			e.flying = append(e.flying, b)
		}
		e.newest = b
		e.gate.enter(b)
		e.fleet.Send(&b.first.Batch)
		e.complete()
	}
}
