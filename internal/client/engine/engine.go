package engine

import (
	"cmp"
	"log/slog"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/base/metrics"
)

// Env is what the rooms above the engine need of their client.
type Env struct {
	Clock        *clock.System
	Nodes        []string        // their names, the same in all processes
	QueryTimeout time.Duration   // how long a node has to answer a query
	Logger       *slog.Logger    // nil: none
	Ending       <-chan struct{} // closed when the client begins to close
	// Ring has each room's Turn called at once. It is called under locks, and does not block.
	Ring func()
}

// Engine carries operations to the nodes of one client. Its driver sends and reads, its ledger has the
// votes, and its counters what has happened.
type Engine struct {
	limits
	driver
	Site  Site      // set before Start
	calls sync.Pool // of *Call
}

// Site is the group of an engine, as its callers know it.
type Site interface {
	// Explain returns the error of an operation as shown by the API.
	Explain(op *Op, err error) error
}

// New makes an engine; [Engine.Start] gives it its nodes.
func New(cfg Config) *Engine {
	e := new(Engine)
	e.timeout = min(cfg.Timeout, MaxTTL) // more would overflow when an instant is added
	e.maxTTL = cmp.Or(cfg.MaxTTL, MaxTTL)
	if cfg.Fence != nil {
		e.reserved = cfg.Fence.Set
	}
	e.init(&cfg)
	e.peers.add(&e.queue.depth)
	return e
}

// Start begins the work on a fleet made with this engine's DriverLock.
func (e *Engine) Start(fleet Fleet) {
	e.lock.Lock()
	e.nodes.start(fleet)
	e.unlock(false)
	e.routines.Add(3)
	go e.read()
	go e.watch()
	go e.makeCalls(0)
}

// Note counts an operation ended by err before it was submitted, or one of several parts.
func (e *Engine) Note(kind Kind, err error) { e.counters.Note(kind, err) }

// Votes returns the votes of a node. The driver lock is held.
func (e *Engine) Votes(node int) Votes { return e.counters.votes[node] }

// AddStats adds the engine's counts. They are of operations, not of calls: an acquire of three tries counts three
// times. The driver lock is held.
func AddStats[N any](e *Engine, s *metrics.Stats[N]) {
	c := &e.counters
	c.addTo(&s.Acquire, Acquire)
	c.addTo(&s.Extend, Extend)
	c.addTo(&s.Release, Release)
	(*metrics.Histogram)(&s.AcquireTimes).Merge(c.times)
	s.Cleanups += c.cleanups
	s.Batches += c.batches
	s.Operations += c.operations
	s.Waiting += int(e.queue.size.Load())
	s.InFlight += e.ledger.undecided
}

// drainFor is how long Close waits for goroutines to end. Only user code can delay them: a blocking callback, a
// Dialer that ignores its context, a connection whose Close does not end its Read.
const drainFor = 500 * time.Millisecond

// Ending refuses acquires from now on, with ErrClosed.
func (e *Engine) Ending() { e.queue.end(false) }

// Close refuses new operations, waits for those under way, cleanups among them, until late is closed, and
// then fails the rest with ErrClosed. It returns when every goroutine of the engine and its fleet has ended, or
// after drainFor. It is called once.
func (e *Engine) Close(late <-chan struct{}) {
	e.queue.end(true)
	e.nodes.closing.Store(true)
	e.nodes.unanswered.Shut()
	for !e.isQuiet() && !IsClosed(late) {
		e.nodes.unanswered.Wait(late, nil)
	}
	e.queries.close() // not before: an answer may show that a place in a queue is still to be taken back
	e.lock.Lock()
	e.turn(e.nodes.Close)
	close(e.nodes.pulse.stop)
	close(e.callbacks.closed)
	ended := make(chan struct{})
	go func() {
		e.nodes.Drain()
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
	e.lock.Lock()
	e.flush()
	quiet = e.nodes.unanswered.Inside() == 0 && e.queue.size.Load() == 0 && e.queries.size.Load() == 0 && e.queries.behind == 0
	e.turn(func() {})
	return quiet
}
