package engine

import (
	"context"
	"sync"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/quorum"
)

// rounds is what the driver sends and knows: batches under way, their votes, and the operations decided by these. The
// driver lock protects it.
type rounds struct {
	batches
	queue    *queue
	cleanups sync.Pool // of *cleanup
	planner  planner
	soonest  clock.Instant // when Limits of those in flight are looked at next; Never: they have none
	rescan   clock.Instant // when those of waiting ones are, or later
	last     *batch        // sent last; it may be in use again for something else
	inFlight []*batch      // all with undecided rounds or in the window, and some others until the next tick
}

// send writes a batch of operations to all nodes, without the deferred ones. It returns the number of these.
func (rs *rounds) send(ops list) (deferred int) {
	b := rs.batch()
	forms := rs.nodes.Forms()
	later := rs.planner.plan(b, ops, forms, rs.window.size == 1 && anyScript(forms))
	rs.queue.putBack(later)
	b.quarantined = rs.nodes.Quarantined()
	rs.counters.batches++
	rs.counters.operations += uint64(ops.n - later.n)
	now := rs.nodes.clock.Now()
	b.sentAt, b.ops = now, len(b.rounds)
	rs.nodes.pulse.see(b.soonest)
	b.deadline, b.latest = now.Add(b.soonest), now
	away, quarantined, longest := rs.nodes.Away(), b.quarantined, time.Duration(0)
	for i := range b.rounds {
		r := &b.rounds[i]
		op := r.op
		b.latest = max(b.latest, now.Add(r.timeout))
		r.quarantined = quarantined
		if op.OfTerm {
			r.quarantined |= rs.nodes.QuarantinedFor(op.TTL + quorum.Drift(op.TTL))
			b.quarantined |= r.quarantined
		} else {
			longest = max(longest, op.TTL)
		}
		r.waited = min(now.Sub(op.start), mostPatience*r.timeout)
		if op.Kind == Acquire {
			op.Absent = away
		}
		if at := r.limit.At; at != 0 {
			rs.soonest = min(rs.soonest, at)
		}
		op.next, op.prev = nil, nil // or else one that is kept keeps all of the batch
		op.advance(inFlight)        // from here on it may be cancelled
	}
	rs.nodes.noteTTL(longest)
	rs.undecided += b.undecided
	rs.nodes.unanswered.Enter()
	if !b.listed {
		b.listed = true
		rs.inFlight = append(rs.inFlight, b)
	}
	rs.last = b
	rs.window.enter(&b.passage)
	rs.nodes.Send(&b.first.Batch)
	return later.n
}

// isFresh reports whether all undecided rounds are of one batch, and it was sent to every node, and none has answered.
// Then nothing is decided before a node other than the early ones has answered: the reader need not wake up sooner.
func (rs *rounds) isFresh() bool {
	b := rs.last
	return b != nil && b.undecided == rs.undecided && b.to == 0 && !b.replied && b.gone == 0 && b.quarantined == 0 && b.owed == 1
}

// fail decides an acquire sent to no node.
func (rs *rounds) fail(op *Op, nonvoters quorum.Set) {
	rs.nodes.pulse.see(MaxTimeout) // it looks after callbacks, too
	rs.nodes.Want()
	op.Tally.Reset(rs.nodes.quorum)
	for node := range (nonvoters & rs.nodes.quorum.Nodes()).All() {
		err := rs.nodes.Fault(node)
		if err == nil {
			err = conn.ErrQuarantined
		}
		op.Tally.Record(node, quorum.Failed)
		op.Failures = append(op.Failures, Failure{node, err})
		rs.observe(node, Acquire, quorum.Failed, err)
	}
	op.Err, op.Absent = ErrNoQuorum, quorum.Everything
	op.advance(decided)
	rs.decided = append(rs.decided, decision{op: op})
}

// expire ends what was not answered in time, and the operations whose callers wait no longer.
func (rs *rounds) expire(now clock.Instant) {
	rs.checkLimits(now)
	for i := len(rs.inFlight) - 1; i >= 0; i-- {
		b := rs.inFlight[i]
		b.expire(now, rs.queue.depth.Load())
		b.tryLeave(b.undecided == 0 && now >= b.latest)
		if b.undecided == 0 && b.left {
			b.listed = false
			last := len(rs.inFlight) - 1
			rs.inFlight[i] = rs.inFlight[last]
			rs.inFlight[last] = nil
			rs.inFlight = rs.inFlight[:last]
		}
	}
	rs.checkQueue(now)
}

// checkQueue looks at a part of the queue for contexts that have ended; at all of it, part by part, once a Limit may
// have ended: submitters wait for one part at most.
func (rs *rounds) checkQueue(now clock.Instant) {
	nonvoters := quorum.Set(0)
	if rs.nodes.noQuorum.Load() { // else an acquire is to find out
		nonvoters = rs.nodes.nonvoters()
	}
	left, all := rs.queue.toScan(now)
	if all {
		rs.rescan = now.Add(limitTick)
	}
	for ; left > 0; left -= scanWaiting {
		rs.checkWaiting(scanWaiting, nonvoters)
	}
}

// nextLimit is when Limits are looked at next.
func (rs *rounds) nextLimit() clock.Instant {
	return min(rs.soonest, max(clock.Instant(rs.queue.soonest.Load()), rs.rescan))
}

// endLimits ends the operations whose Limits have ended. Each turn of the driver does so: while it has much to do the
// watchdog is late.
func (rs *rounds) endLimits() {
	next := rs.nextLimit()
	if next == clock.Never {
		return
	}
	now := rs.nodes.clock.Now()
	if now >= rs.soonest {
		rs.checkLimits(now)
	}
	if now >= next {
		rs.checkQueue(now)
	}
}

// checkLimits ends the operations in flight whose callers wait no longer. A claim takes an operation from its round, so no
// vote can end it too.
func (rs *rounds) checkLimits(now clock.Instant) {
	rs.soonest = clock.Never
	var ended list
	for _, b := range rs.inFlight {
		for i := range b.rounds {
			r := &b.rounds[i]
			switch {
			case r.op == nil:
			case !r.limit.IsOver(now):
				if at := r.limit.At; at != 0 {
					rs.soonest = min(rs.soonest, at)
				}
			case r.op.claim(r.life, decided):
				op := r.op
				if op.Kind == Acquire {
					op.Absent = r.absent
					rs.cleanUp(op)
				}
				ended.push(op)
			}
		}
	}
	rs.soonest = max(rs.soonest, now.Add(limitTick))
	rs.finish(ended)
}

// scanWaiting is how many queued operations are looked at in a turn.
const scanWaiting = 2048

// checkWaiting does the same for n unsent operations. A release keeps its place in the queue: its caller has gone, but
// it is sent, and before any later acquire. While too few nodes can vote it also fails the acquires, whether the window
// is open or not. Sent, they would only have to be cleaned up after, thousands of times a second.
func (rs *rounds) checkWaiting(n int, nonvoters quorum.Set) {
	now, lacking := rs.nodes.clock.Now(), rs.nodes.noQuorum.Load()
	var ended, vain list
	rs.queue.scan(n, func(op *Op) {
		switch hasEnded := op.limit.IsOver(now); {
		case lacking && !hasEnded && op.Kind == Acquire: // Kind comes last: it is in memory that is not read else
			rs.queue.unlink(op, sending)
			vain.push(op)
			return
		case !hasEnded:
			rs.queue.noteLimit(op)
			return
		case op.Kind == Release:
			rs.queue.replace(op, &rs.copyOf(op).Op)
		default:
			rs.queue.unlink(op, decided)
		}
		ended.push(op)
	})
	rs.finish(ended)
	for op := vain.pop(); op != nil; op = vain.pop() {
		rs.fail(op, nonvoters)
	}
}

// finish ends operations because their callers wait no longer. Such a call asks its context for the error; an operation
// without a waiting caller has a deadline alone.
func (rs *rounds) finish(ended list) {
	var ops list
	for op := ended.pop(); op != nil; op = ended.pop() {
		rs.queue.depth.Add(-1)
		rs.counters.count(op, cancelled)
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
		rs.callbacks.complete(ops, rs.nodes.clock.Now())
		rs.callbacks.wake() // this goroutine may keep the lock for long
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
func (rs *rounds) copyOf(op *Op) *cleanup {
	c, _ := rs.cleanups.Get().(*cleanup)
	if c == nil {
		c = &cleanup{pool: &rs.cleanups}
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
func (rs *rounds) cleanUp(op *Op) {
	if rs.nodes.quorum.Nodes()&^op.Absent != 0 {
		var l list
		l.push(&rs.copyOf(op).Op)
		_, _ = rs.queue.push(l, nil) // cleanups are never refused
	}
}
