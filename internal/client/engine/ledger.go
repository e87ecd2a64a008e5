package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// ledger is what the driver sends and knows: batches under way, their votes, what nodes are owed, and the operations that
// votes have decided. The driver lock protects it.
type ledger struct {
	nodes     *nodes
	queue     *queue
	observer  Observer
	counters  *counters
	callbacks *callbacks
	onVote    func(Vote)     // or nil
	fence     *command.Fence // for fenced acquires and extends, or nil

	planner  planner
	window   window
	inFlight []*batch // all with undecided rounds or in the window, and some others until the next tick
	last     *batch   // sent last; it may be in use again for something else
	free     spares
	cleanups sync.Pool // of *cleanup
	hints    [quorum.MaxNodes]hints
	ready    quorum.Set // nodes with new hints, or whose handoff has ended: the next may follow

	undecided int           // rounds, over all batches
	decided   []decision    // to be completed
	limitAt   clock.Instant // when Limits of those in flight are looked at next; Never: they have none
	rescan    clock.Instant // when those of waiting ones are, or later

	decoder command.Reader
	parsed  command.Answers
}

// send writes a batch of operations to all nodes, without the deferred ones. It returns the number of these.
func (lg *ledger) send(ops list) (deferred int) {
	b := lg.batch()
	forms := lg.nodes.Forms()
	byScript := slices.ContainsFunc(forms, func(f conn.Form) bool { return command.Form(f).IsScript(Release) })
	later := lg.planner.plan(b, ops, forms, byScript && lg.window.size == 1)
	lg.queue.putBack(later)
	b.quarantined = lg.nodes.Quarantined()
	lg.counters.batches++
	lg.counters.operations += uint64(ops.n - later.n)
	now := lg.nodes.clock.Now()
	b.sentAt, b.ops = now, len(b.rounds)
	lg.nodes.pulse.see(b.soonest)
	b.deadline, b.latest = now.Add(b.soonest), now
	away, quarantined, longest := lg.nodes.Away(), b.quarantined, time.Duration(0)
	for i := range b.rounds {
		r := &b.rounds[i]
		op := r.op
		b.latest = max(b.latest, now.Add(r.timeout))
		r.quarantined = quarantined
		if op.OfTerm {
			r.quarantined |= lg.nodes.QuarantinedFor(op.TTL + quorum.Drift(op.TTL))
			b.quarantined |= r.quarantined
		} else {
			longest = max(longest, op.TTL)
		}
		r.waited = min(now.Sub(op.start), mostPatience*r.timeout)
		if op.Kind == Acquire {
			op.Absent = away
		}
		if at := r.limit.At; at != 0 {
			lg.limitAt = min(lg.limitAt, at)
		}
		op.next, op.prev = nil, nil // or else one that is kept keeps all of the batch
		op.advance(inFlight)        // from here on it may be cancelled
	}
	lg.nodes.noteTTL(longest)
	lg.undecided += b.undecided
	lg.nodes.unanswered.Enter()
	if !b.listed {
		b.listed = true
		lg.inFlight = append(lg.inFlight, b)
	}
	lg.last = b
	lg.window.enter(&b.passage)
	lg.nodes.Send(&b.first.Batch)
	return later.n
}

// isFresh reports whether all undecided rounds are of one batch, and it was sent to every node, and none has answered.
// Then nothing is decided before a node other than the early ones has answered: the reader need not wake up sooner.
func (lg *ledger) isFresh() bool {
	b := lg.last
	return b != nil && b.undecided == lg.undecided && b.to == 0 && !b.replied && b.gone == 0 && b.quarantined == 0 && b.owed == 1
}

// fail decides an acquire sent to no node.
func (lg *ledger) fail(op *Op, nonvoters quorum.Set) {
	lg.nodes.pulse.see(MaxTimeout) // it looks after callbacks, too
	lg.nodes.Want()
	op.Tally.Reset(lg.nodes.quorum)
	for node := range (nonvoters & lg.nodes.quorum.Nodes()).All() {
		err := lg.nodes.Fault(node)
		if err == nil {
			err = conn.ErrQuarantined
		}
		op.Tally.Record(node, quorum.Failed)
		op.Failures = append(op.Failures, Failure{node, err})
		lg.observe(node, Acquire, quorum.Failed, err)
	}
	op.Err, op.Absent = ErrNoQuorum, quorum.Everything
	op.advance(decided)
	lg.decided = append(lg.decided, decision{op: op})
}

// expire ends what was not answered in time, and the operations whose callers wait no longer.
func (lg *ledger) expire(now clock.Instant) {
	lg.checkLimits(now)
	for i := len(lg.inFlight) - 1; i >= 0; i-- {
		b := lg.inFlight[i]
		b.expire(now, lg.queue.depth.Load())
		b.tryLeave(b.undecided == 0 && now >= b.latest)
		if b.undecided == 0 && b.left {
			b.listed = false
			last := len(lg.inFlight) - 1
			lg.inFlight[i] = lg.inFlight[last]
			lg.inFlight[last] = nil
			lg.inFlight = lg.inFlight[:last]
		}
	}
	lg.checkQueue(now)
}

// checkQueue looks at a part of the queue for contexts that have ended; at all of it, part by part, once a Limit may
// have ended: submitters wait for one part at most.
func (lg *ledger) checkQueue(now clock.Instant) {
	nonvoters := quorum.Set(0)
	if lg.nodes.noQuorum.Load() { // else an acquire is to find out
		nonvoters = lg.nodes.nonvoters()
	}
	left, all := lg.queue.toScan(now)
	if all {
		lg.rescan = now.Add(limitTick)
	}
	for ; left > 0; left -= scanWaiting {
		lg.checkWaiting(scanWaiting, nonvoters)
	}
}

// nextLimit is when Limits are looked at next.
func (lg *ledger) nextLimit() clock.Instant {
	return min(lg.limitAt, max(clock.Instant(lg.queue.soonest.Load()), lg.rescan))
}

// endLimits ends the operations whose Limits have ended. Each turn of the driver does so: while it has much to do the
// watchdog is late.
func (lg *ledger) endLimits() {
	next := lg.nextLimit()
	if next == clock.Never {
		return
	}
	now := lg.nodes.clock.Now()
	if now >= lg.limitAt {
		lg.checkLimits(now)
	}
	if now >= next {
		lg.checkQueue(now)
	}
}

// checkLimits ends the operations in flight whose callers wait no longer. A claim takes an operation from its round, so no
// vote can end it too.
func (lg *ledger) checkLimits(now clock.Instant) {
	lg.limitAt = clock.Never
	var ended list
	for _, b := range lg.inFlight {
		for i := range b.rounds {
			r := &b.rounds[i]
			switch {
			case r.op == nil:
			case !r.limit.IsOver(now):
				if at := r.limit.At; at != 0 {
					lg.limitAt = min(lg.limitAt, at)
				}
			case r.op.claim(r.life, decided):
				op := r.op
				if op.Kind == Acquire {
					op.Absent = r.absent
					lg.cleanUp(op)
				}
				ended.push(op)
			}
		}
	}
	lg.limitAt = max(lg.limitAt, now.Add(limitTick))
	lg.finish(ended)
}

// scanWaiting is how many queued operations are looked at in a turn.
const scanWaiting = 2048

// checkWaiting does the same for n unsent operations. A release keeps its place in the queue: its caller has gone, but
// it is sent, and before any later acquire. While too few nodes can vote it also fails the acquires, whether the window
// is open or not. Sent, they would only have to be cleaned up after, thousands of times a second.
func (lg *ledger) checkWaiting(n int, nonvoters quorum.Set) {
	now, lacking := lg.nodes.clock.Now(), lg.nodes.noQuorum.Load()
	var ended, vain list
	lg.queue.scan(n, func(op *Op) {
		switch hasEnded := op.limit.IsOver(now); {
		case lacking && !hasEnded && op.Kind == Acquire: // Kind comes last: it is in memory that is not read else
			lg.queue.unlink(op, sending)
			vain.push(op)
			return
		case !hasEnded:
			lg.queue.noteLimit(op)
			return
		case op.Kind == Release:
			lg.queue.replace(op, &lg.copyOf(op).Op)
		default:
			lg.queue.unlink(op, decided)
		}
		ended.push(op)
	})
	lg.finish(ended)
	for op := vain.pop(); op != nil; op = vain.pop() {
		lg.fail(op, nonvoters)
	}
}

// finish ends operations because their callers wait no longer. Such a call asks its context for the error; an operation
// without a waiting caller has a deadline alone.
func (lg *ledger) finish(ended list) {
	var ops list
	for op := ended.pop(); op != nil; op = ended.pop() {
		lg.queue.depth.Add(-1)
		lg.counters.count(op, cancelled)
		if op.Ends == CallsBack {
			op.Err = context.DeadlineExceeded
			ops.push(op)
			continue
		}
		op.Err = context.Canceled
		op.advance(idle)
		op.Done.Complete(op)
	}
	if ops.n > 0 {
		lg.callbacks.complete(ops, lg.nodes.clock.Now())
		lg.callbacks.wake() // this goroutine may keep the lock for long
	}
}

// cleanup is the release after a failed, late or cancelled acquire. No caller waits for it.
type cleanup struct {
	Op
	pool *sync.Pool
	key  []byte
}

// Complete implements Completion.
func (c *cleanup) Complete(*Op) { c.pool.Put(c) }

// copyOf is a release as or after op. It copies what it needs: op belongs to its caller again soon.
func (lg *ledger) copyOf(op *Op) *cleanup {
	c, _ := lg.cleanups.Get().(*cleanup)
	if c == nil {
		c = &cleanup{pool: &lg.cleanups}
		c.Done = c
	}
	c.Ends = cleansUp
	c.key = append(c.key[:0], op.Key...)
	c.Kind, c.Key, c.Token, c.Tail, c.TTL, c.Timeout, c.Absent = Release, c.key, op.Token, op.Tail, 0, op.Timeout, op.Absent
	c.OfSet, c.Stay, c.Shared = op.OfSet, op.Stay, op.Shared
	c.Reserve() // it is idle
	c.begin(op.start)
	return c
}

// cleanUp queues the release to undo an acquire, on all nodes, unless no node can have the key. Each node gets it
// after the acquire.
func (lg *ledger) cleanUp(op *Op) {
	if lg.nodes.quorum.Nodes()&^op.Absent != 0 {
		var l list
		l.push(&lg.copyOf(op).Op)
		_, _ = lg.queue.push(l, nil) // cleanups are never refused
	}
}
