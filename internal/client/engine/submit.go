package engine

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// Submit queues op and has it sent. It does not block and does not allocate; op.Done is notified of the result,
// possibly before Submit returns. With an error (ErrClosed, ErrBusy but not of a release, or a wrong argument) nothing
// was queued.
func (e *Engine) Submit(op *Op) error {
	now, kind := e.nodes.clock.Now(), op.Kind // once queued, op may be submitted again by its Done
	if op.state.Load()&phaseMask != reserved && !op.Reserve() {
		return ErrUnderWay // and leave it as it is
	}
	if err := e.check(op); err != nil {
		op.Err, op.Until = err, clock.Never
		op.advance(idle)
		return err
	}
	var l list
	l.push(op)
	if err := e.queueAll(l, nil, now); err != nil {
		return err
	}
	if now >= clock.Instant(e.callbacks.collects.Load()) {
		e.submitted(kind, now, lone{})
	}
	return nil
}

// enqueue queues checked operations of one kind together: all of them or, with ErrBusy or ErrClosed, none. It does not
// block. Drive sends them.
func (e *Engine) enqueue(ops list) error { return e.queueAll(ops, nil, e.nodes.clock.Now()) }

// begin is enqueue for calls, and sends them. Their callers Wait for each.
func (e *Engine) begin(ops list) error {
	kind, now := ops.first.Kind, e.nodes.clock.Now()
	if err := e.queueAll(ops, nil, now); err != nil {
		return err
	}
	e.submitted(kind, now, lone{})
	return nil
}

// Drive sends what waits, if no other goroutine is about to. It does not block.
func (e *Engine) Drive() { e.submitted(Extend, e.nodes.clock.Now(), lone{}) }

// queueAll queues checked operations of one kind, all of them or none, and behind them, if it is not nil, the acquire of
// another caller. This caller learns of its end in every case: also where the closing engine takes the releases alone.
func (e *Engine) queueAll(l list, along *Call, now clock.Instant) error {
	for op := l.first; op != nil; op = op.next {
		e.prepare(op, now)
	}
	var next *Op
	if along != nil {
		next = &along.Op
		e.prepare(next, now)
	}
	err, vain := e.queue.push(l, next)
	if err != nil {
		for op := l.pop(); op != nil; op = l.pop() {
			e.refuse(op, err, along == nil)
		}
	}
	if along != nil && vain != nil {
		e.refuse(next, vain, false)
		along.Complete(nil)
	}
	return err
}

// prepare begins an operation, and counts it as under way if a caller waits for it.
func (e *Engine) prepare(op *Op, now clock.Instant) {
	op.Reserve() // unless it is
	op.begin(now)
	if op.Ends.isAwaited() {
		e.queue.depth.Add(1)
	}
}

// refuse ends an operation that was not queued. Of a pair without room each caller asks again, alone.
func (e *Engine) refuse(op *Op, err error, alone bool) {
	op.Err, op.Until = err, clock.Never // no phase to end: it was not begun
	op.advance(idle)
	if op.Ends.isAwaited() {
		e.queue.depth.Add(-1)
	}
	if alone || err != ErrBusy {
		e.counters.noteOp(op, err)
	}
}

// Listen notes that d more callers wait for pushes. Pushes are then read at once, and not by the watchdog. It counts
// from the next query on.
func (e *Engine) Listen(d int64) { e.listeners.Add(d) }

// Cancel takes op back from the engine. It returns false if it is too late: op is completed, or is about to be.
// Otherwise op is the caller's again and will not be completed. The release of an acquire, perhaps already at a node,
// is on the way.
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
	e.queue.depth.Add(-1)
	e.Note(op.Kind, context.Canceled)
	if sent && op.Kind == Acquire {
		e.Abandon(op)
	}
	return true
}

// DriveAtOnce is Drive for a process that may end right after it. The fleet was given all that is queued without a
// waiting caller when DriveAtOnce returns, past the window if need be, unless several other operations are under way:
// then it goes with the next batch. One other does not count: it may be the renewal of the lock that is released.
func (e *Engine) DriveAtOnce() {
	if e.queue.depth.Load() > 1 || e.alone.Load() {
		e.Drive()
		return
	}
	e.lock.Lock() // its holders are quick: none of them waits for nodes
	e.ledger.window.more(maxWindow)
	e.turn(func() { e.flush(); e.ledger.window.more(0) })
}

// DriveSoon sends operations without a waiting caller a little later, if the last call was a lone caller's: with its
// next operation, or at the watchdog's next tick, at most maxTick later. So a caller with another lock to take at once
// has one batch and one round trip for both. Of several callers the reader collects both anyway, and a release that
// waits would have each of them send alone again.
//
// Submitters that do not get the lock rely on its holder to drive. Those with a waiting caller have counted themselves
// in depth before they tried, so it is enough to look there. A cleanup whose submitter tried in this moment is sent at
// the tick too.
func (e *Engine) DriveSoon() {
	if e.lone.Load() && e.queue.depth.Load() == 0 && e.lock.TryLock() {
		e.nodes.pulse.see(MaxTimeout)
		e.unlock(false)
		if e.queue.depth.Load() == 0 {
			return
		}
	}
	e.Drive()
}

// LacksQuorum reports whether too few nodes can vote for an acquire to win: it is failed without
// being sent.
func (e *Engine) LacksQuorum() bool {
	if !e.nodes.noQuorum.Load() { // it is noted with each acquire
		return false
	}
	e.lock.Lock()
	e.turn(func() { e.nodes.nonvoters() })
	return e.nodes.noQuorum.Load()
}

// Query returns one for a node, to be given its commands, to Ask and to Free.
func (e *Engine) Query(node int, timeout time.Duration) *Query { return e.queries.query(node, timeout) }

// Ask sends a query. It does not block.
func (e *Engine) Ask(q *Query) {
	if !e.queries.begin(q) && q.Ring != nil {
		q.Ring()
	}
	e.drive(lone{})
}

// AskSoon queues a query behind all others to its node, to be sent by SendQueries. It reports whether it has: a closed
// engine answers with ErrClosed at once, and does not ring. No lock is taken but that of queries.
func (e *Engine) AskSoon(q *Query) bool { return e.queries.begin(q) }

// SendQueries sends the queries that wait, if no other goroutine is about to. It does not block.
func (e *Engine) SendQueries() { e.drive(lone{}) }
