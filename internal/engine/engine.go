package engine

import (
	"cmp"
	"context"
	"math/bits"
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
	Fault(node int) error
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
	// OnVote hears of every vote, as callbacks do; it may be nil. An err is there
	// where the vote failed.
	OnVote func(node int, kind Kind, o quorum.Outcome, err error)
	// OnPanic hears of a callback that has panicked; it may be nil.
	OnPanic func(v any, stack []byte)
}

// Engine carries operations to the nodes of one client.
type Engine struct {
	clock   clock.Clock
	timeout time.Duration
	maxTTL  time.Duration
	onVote  func(node int, kind Kind, o quorum.Outcome, err error)
	onPanic func(v any, stack []byte)
	fleet   Fleet
	nodes   int
	quorum  int

	queue     queue
	callbacks callbacks
	depth     atomic.Int64 // operations submitted by callers and without a result

	alone     atomic.Bool // the driver waits in the kernel, or is about to
	role      sync.Mutex  // the driver; everything below is the driver's
	gate      gate
	encoder   encoder
	flying    []*batch // all with undecided rounds or in the window, and some others until the next tick
	extending batches  // those with extends that a node has yet to answer
	free      []*batch
	kept      int           // bytes of their buffers
	settled   list          // operations with a verdict, to be completed
	undecided int           // rounds, over all batches
	unsettled int           // batches that a node still owes replies for
	armed     bool          // the reader is woken by the next arrival
	longest   time.Duration // TTL that was sent
	hints     [quorum.MaxNodes]hints
	reader    operandReader
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
	e := &Engine{clock: cfg.Clock, onVote: cfg.OnVote, onPanic: cfg.OnPanic, quiet: make(chan struct{}, 1)}
	e.timeout = min(cfg.Timeout, MaxTTL) // more would overflow when an instant is added
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
	(*Engine)(r).leave(false)
	(*Engine)(r).drive(nil)
}

// Start begins the work on a fleet that was made with this engine's Role.
func (e *Engine) Start(fleet Fleet) {
	e.role.Lock()
	e.take(fleet)
	e.leave(false)
	e.routines.Add(2)
	go e.read(0)
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
	if err := e.check(op); err != nil {
		op.Err, op.Until = err, never
		return err
	}
	return e.enqueueChecked(op)
}

// enqueueChecked is enqueue for an operation that was checked before.
func (e *Engine) enqueueChecked(op *Op) error {
	if err := op.begin(e.clock.Now()); err != nil {
		return err // and leave the one under way as it is
	}
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

// maxTurns is how many turns as the driver a submitter takes: its own, and some for
// operations that were submitted while it had the role. Then the reader goes on.
// Without a bound a submitter might drive for others for ever.
const maxTurns = 4

// drive sends what waits, if the window is open and no other driver is at it. A
// caller that passes a Call and finds itself alone stays and reads its own
// replies.
//
// No operation can be left behind: a submitter that fails to get the role has
// pushed before it tried, and each driver runs this loop's condition again after
// giving the role up. One that is asleep in the kernel meanwhile has said so
// before it looked at the queue a last time, and is woken.
func (e *Engine) drive(c *Call) {
	for turn := 0; e.queue.size.Load() > 0 && e.gate.isOpen.Load() && !e.callbacks.collecting.Load(); turn++ {
		if !e.role.TryLock() {
			if e.alone.Load() {
				e.fleet.Wake()
			}
			return
		}
		if turn == maxTurns {
			e.leave(true)
			return
		}
		e.serve(c)
	}
}

// serve is one turn as the driver; the role is held and is given up.
func (e *Engine) serve(c *Call) {
	e.flush()
	if c != nil {
		e.readAlone(c)
	}
	e.leave(false)
}

// leave gives up the role. The reader is to be woken by what arrives if a caller
// waits for it; or if nothing is asked at all, for then it is news of a connection
// that has ended. Stragglers are left to the watchdog. The reader is woken at once
// where it is to drive, or has callbacks to call; while it collects it is awake.
func (e *Engine) leave(handOver bool) {
	ring := handOver || e.callbacks.waiting.Load() > 0 && !e.callbacks.collecting.Load()
	if e.fleet != nil && !e.armed && (ring || e.undecided > 0 || !e.watchdog.awake) {
		e.armed = true
		e.fleet.Arm()
	}
	e.role.Unlock()
	if ring && e.fleet != nil {
		e.fleet.Wake()
	}
}

// turn runs f as the driver, the role being held, and then looks after what was
// submitted meanwhile.
func (e *Engine) turn(f func()) {
	f()
	e.flush()
	e.leave(false)
	e.drive(nil)
}

// flush sends what was queued when it began, while the window is open. What comes
// later, because operations that fail at once are submitted again for example, is
// for the next turn: between two turns dialers, the reader and Stats get the role.
func (e *Engine) flush() {
	e.complete() // before any batch that they refer to is used again
	for left := int(e.queue.size.Load()); left > 0 && e.gate.isOpen.Load(); {
		first, n := e.queue.take(min(left, e.gate.limit()), maxBatchKeys)
		if n == 0 {
			return // it was cancelled
		}
		left -= n
		blind := e.fleet.Away() | e.fleet.Guarded()
		if bits.OnesCount64(blind) > quorum.Tolerates(e.nodes) {
			first, n = e.failAcquires(first, blind)
		}
		if n > 0 {
			left += e.send(first, n)
		}
		e.complete()
	}
}

// send writes a batch of n operations to all nodes, less those that are held back,
// whose number it returns.
func (e *Engine) send(first *Op, n int) (held int) {
	b := e.batch()
	dialects := e.fleet.Dialects()
	back := e.encoder.encode(b, first, n, dialects, e.gate.window == 1 && anyScript(dialects))
	e.queue.putBack(back)
	e.outlive(b.longest)
	b.guarded = e.fleet.Guarded()
	e.counters.send(n - back.n)
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
		op.advance(flying) // from here on it may be cancelled
	}
	e.undecided += b.undecided
	e.unsettled++
	if !b.listed {
		b.listed = true
		e.flying = append(e.flying, b)
	}
	if b.extends {
		e.extending.add(b)
	}
	e.gate.enter(b)
	e.fleet.Send(&b.first.Batch)
	return back.n
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
			err = conn.ErrGuarded
		}
		op.Tally.Record(node, quorum.Failed)
		op.Failures = append(op.Failures, Failure{node, err})
		e.observe(node, Acquire, quorum.Failed, err)
	}
	op.Err, op.Absent = ErrNoQuorum, ^uint64(0)
	op.advance(idle)
	e.settled.push(op)
}
