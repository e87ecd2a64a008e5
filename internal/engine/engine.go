package engine

import (
	"cmp"
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/fleet"
	"github.com/redlock-go/redlock/quorum"
)

// Bounds of one batch. Larger ones gain nothing: by then a system call costs
// little next to what it carries.
const (
	maxBatchOps  = 1024
	maxBatchKeys = 256 << 10 // bytes of keys
)

// Fleet has the methods of the nodes that the engine uses; *fleet.Fleet is one. Its
// contract is that of package fleet.
type Fleet interface {
	Len() int
	Forms() []fleet.Form
	Node(node int) fleet.Node // the engine uses Form and Connection
	SetForm(node int, f fleet.Form)
	Quarantined() quorum.Set
	Away() quorum.Set
	Fault(node int) error
	NoteTTL(d time.Duration)
	Send(b *fleet.Batch)
	SendTo(node int, b *fleet.Batch)
	Sweep(d time.Duration)
	Check()
	CanBlock() bool
	Wake()
	Arm()
	Wait() bool
	Close()
	Drain()
}

// Config configures an [Engine].
type Config struct {
	Clock      clock.Clock
	Quorum     *quorum.Config // of the fleet's nodes; nil is a majority of all
	MaxWaiting int            // operations that may wait to be sent
	// MaxInFlight is the replies that a node may owe beside those of queries; 0 is no
	// bound. The window takes half of it: a node that keeps up is not cut off by a burst.
	MaxInFlight int
	MaxTTL      time.Duration // of any operation; 0 is the limit MaxTTL
	Timeout     time.Duration // for the nodes to answer; 0 means it follows from the TTL
	// OnVote is called for every vote, as callbacks are; it may be nil. err is set where
	// the vote failed.
	OnVote func(node int, kind Kind, o quorum.Outcome, err error)
	// Observer learns what the driver comes to know beside results; it may be nil.
	Observer Observer
	// Fence is what fenced acquires and extends need, or nil. The driver lock protects it.
	Fence *command.Fence
	// OnPanic is called for a callback that has panicked; it may be nil.
	OnPanic func(v any, stack []byte)
	Peers   *Peers // the engines of the client; nil: there is one
}

// Engine carries operations to the nodes of one client.
type Engine struct {
	clock    clock.Clock
	timeout  time.Duration
	maxTTL   time.Duration
	onVote   func(node int, kind Kind, o quorum.Outcome, err error)
	observer Observer
	onPanic  func(v any, stack []byte)
	fleet    Fleet
	nodes    int
	quorum   *quorum.Config
	fence    *command.Fence
	peers    *Peers

	queue     queue
	callbacks callbacks
	depth     atomic.Int64 // operations submitted by callers and without a result

	collectOps        atomic.Int64 // until this instant another goroutine drives for operations without a waiting caller; 0: none does
	collectCalls      atomic.Int64 // the same for all operations
	quorumUnavailable atomic.Bool  // too few nodes can vote for an acquire to win
	listeners         atomic.Int64 // that wait for pushes

	alone      atomic.Bool // the driver waits in the kernel, or is about to
	driver     sync.Mutex  // the driver lock; what is below belongs to its holder
	window     window
	planner    planner
	inFlight   []*batch // all with undecided rounds or in the window, and some others until the next tick
	free       []*batch
	kept       int           // bytes of their buffers
	decided    list          // operations with a verdict, to be completed
	undecided  int           // rounds, over all batches
	unanswered int           // batches that a node still owes replies for
	armed      bool          // the reader is woken by the next arrival
	longest    time.Duration // TTL that was sent
	hints      [quorum.MaxNodes]hints
	reader     command.Reader
	answers    command.Answers
	counters   counters
	queries    queries
	repairs    repairs

	unyielding int // batches without yield; the reader's

	watchdog watchdog
	closing  atomic.Bool
	calls    sync.Pool     // of *Call
	cleanups sync.Pool     // of *cleanup
	quiet    chan struct{} // rung while closing, when the last batch is answered
	routines sync.WaitGroup
}

// New makes an engine; [Engine.Start] gives it its nodes.
func New(cfg Config) *Engine {
	e := &Engine{clock: cfg.Clock, onVote: cfg.OnVote, observer: cfg.Observer, onPanic: cfg.OnPanic, fence: cfg.Fence, quorum: cfg.Quorum, peers: cfg.Peers, quiet: make(chan struct{}, 1)}
	if e.observer == nil {
		e.observer = deaf{}
	}
	e.timeout = min(cfg.Timeout, MaxTTL) // more would overflow when an instant is added
	e.maxTTL = cmp.Or(cfg.MaxTTL, MaxTTL)
	e.queue.limit = cfg.MaxWaiting
	e.window.init(cfg.MaxInFlight)
	e.queries.init(cfg.MaxInFlight)
	e.planner.init()
	e.watchdog.init()
	e.callbacks.init()
	e.peers.add(&e.depth)
	return e
}

// Start begins the work on a fleet that was made with this engine's DriverLock.
func (e *Engine) Start(fleet Fleet) {
	e.driver.Lock()
	e.take(fleet)
	e.unlock(false)
	e.routines.Add(3)
	go e.read()
	go e.watch()
	go e.makeCalls(0)
}

func (e *Engine) take(fleet Fleet) {
	e.fleet, e.nodes = fleet, fleet.Len()
	if e.quorum == nil {
		e.quorum = quorum.Majority(quorum.First(e.nodes))
	}
}

// Submit queues op and ensures that it is sent. It does not block and does
// not allocate; op.Done is notified of the result, possibly before Submit returns.
// With an error (ErrClosed, ErrBusy, or one of a wrong argument) nothing was queued.
func (e *Engine) Submit(op *Op) error {
	now, kind := e.clock.Now(), op.Kind // once queued, op may be submitted again by its Done
	if err := e.enqueueAt(op, now); err != nil {
		return err
	}
	e.submitted(kind, now, nil)
	return nil
}

func (e *Engine) enqueueAt(op *Op, now time.Duration) error {
	if !op.isReserved() && !op.Reserve() {
		return ErrUnderWay // and leave it as it is
	}
	if err := e.check(op); err != nil {
		op.Err, op.Until = err, clock.Never
		op.advance(idle)
		return err
	}
	return e.enqueueChecked(op, now)
}

// enqueueChecked is enqueue for an operation that was reserved and checked before.
func (e *Engine) enqueueChecked(op *Op, now time.Duration) error {
	op.begin(now)
	e.depth.Add(1)
	if err := e.queue.push(op, false); err != nil {
		op.Err, op.Until = err, clock.Never // no phase to end: it was not begun
		op.advance(idle)
		e.depth.Add(-1)
		e.noteOp(op, err)
		return err
	}
	return nil
}

// Ops is a list of operations to be submitted together. The zero value is empty.
type Ops struct{ list }

// Add appends an operation that is idle.
func (o *Ops) Add(op *Op) { o.push(op) }

// Enqueue queues renewals that were checked, together, so that they travel together and
// before all others; Drive sends them. Their number is bounded by that of the locks that are
// held, and Config.MaxWaiting does not hold for them. With ErrClosed nothing was queued. It
// does not block, and they cannot be cancelled.
func (e *Engine) Enqueue(ops Ops) error {
	if ops.n == 0 {
		return nil
	}
	return e.enqueueAll(ops.list, e.clock.Now(), renewals)
}

// Drive sends what waits, if no other goroutine is about to. It does not block.
func (e *Engine) Drive() { e.submittedNow(Extend, e.clock.Now(), nil) }

// enqueueAll is enqueueChecked for several operations, of which all or none are queued.
func (e *Engine) enqueueAll(l list, now time.Duration, u urgency) error {
	for op := l.first; op != nil; op = op.next {
		op.Reserve() // it is idle
		op.begin(now)
	}
	e.depth.Add(int64(l.n))
	err := e.queue.pushAll(l, u)
	if err == nil {
		return nil
	}
	e.depth.Add(int64(-l.n))
	for op := l.pop(); op != nil; op = l.pop() {
		op.Err, op.Until = err, clock.Never // no phase to end: it was not begun
		op.advance(idle)
		e.noteOp(op, err)
	}
	return err
}

// Listen notes that d more callers wait for pushes, which are read at once then and not by
// the watchdog. It counts from the next query on.
func (e *Engine) Listen(d int64) { e.listeners.Add(d) }

// Check refuses wrong arguments; see Enqueue.
func (e *Engine) Check(op *Op) error { return e.check(op) }

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
		if s&phaseMask != inFlight || !op.claim(s, idle) {
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

// awaitSent waits out the moment in which the driver encodes op, and returns
// the state after it.
func (op *Op) awaitSent() uint64 {
	for {
		if s := op.state.Load(); s&phaseMask != sending {
			return s
		}
		runtime.Gosched()
	}
}

// drainFor is how long Close waits for goroutines to end. Only user code can
// delay them: a callback that blocks, a Dialer that ignores its context, a connection
// with a Close that does not end its Read.
const drainFor = 500 * time.Millisecond

// Ending refuses acquires from now on, with ErrClosed.
func (e *Engine) Ending() { e.queue.end() }

// Close refuses new operations, waits for those under way, cleanups among them, until late is closed, and
// then fails the rest with ErrClosed. It returns when every goroutine of the engine and its fleet has ended, or
// after drainFor. It is called once.
func (e *Engine) Close(late <-chan struct{}) {
	e.queue.close()
	e.queries.close()
	e.closing.Store(true)
	for !e.isQuiet() && !IsClosed(late) {
		select {
		case <-e.quiet:
		case <-late:
		}
	}
	e.driver.Lock()
	e.turn(e.fleet.Close)
	close(e.watchdog.stop)
	close(e.callbacks.closed)
	ended := make(chan struct{})
	go func() {
		e.fleet.Drain()
		e.routines.Wait()
		close(ended)
	}()
	tick := time.NewTicker(maxTick) // in place of the watchdog's
	defer tick.Stop()
	timer := time.NewTimer(drainFor)
	defer timer.Stop()
	for {
		select {
		case <-ended:
			return
		case <-timer.C:
			return
		case <-tick.C:
			e.lookAfterCaller()
		}
	}
}

func (e *Engine) isQuiet() (quiet bool) {
	e.driver.Lock()
	e.flush()
	quiet = e.unanswered == 0 && e.queue.size.Load() == 0 && e.queries.size.Load() == 0 && e.queries.behind == 0
	e.turn(func() {})
	return quiet
}
