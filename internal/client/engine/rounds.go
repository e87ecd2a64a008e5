package engine

import (
	"context"
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
	cleanups cleanups
	planner  planner
	last     *batch   // sent last; it may be in use again for something else
	inFlight []*batch // all with undecided rounds or in the window, and some others until the next tick
}

// send writes a batch of n operations to all nodes, without the deferred ones. It returns the number of these.
func (l *rounds) send(first *Op, n int) (deferred int) {
	b := l.batch()
	forms := l.nodes.Forms()
	later := l.planner.plan(b, first, n, forms, l.window.size == 1 && anyScript(forms))
	l.queue.putBack(later)
	b.quarantined = l.nodes.Quarantined()
	l.counters.send(n - later.n)
	now := l.nodes.clock.Now()
	b.sentAt, b.ops = now, len(b.rounds)
	l.nodes.pulse.see(b.soonest)
	b.deadline, b.latest = now.Add(b.soonest), now
	away, longest := l.nodes.Away(), time.Duration(0)
	for i := range b.rounds {
		r := &b.rounds[i]
		op := r.op
		longest, b.latest = max(longest, op.TTL), max(b.latest, now.Add(r.timeout))
		r.waited = min(now.Sub(op.start), mostPatience*r.timeout)
		if op.Kind == Acquire {
			op.Absent = away
		}
		op.advance(inFlight) // from here on it may be cancelled
	}
	l.nodes.noteTTL(longest)
	l.undecided += b.undecided
	l.nodes.unanswered.Enter()
	if !b.listed {
		b.listed = true
		l.inFlight = append(l.inFlight, b)
	}
	l.last = b
	l.window.enter(&b.stay)
	l.nodes.Send(&b.first.Batch)
	return later.n
}

// isFresh reports whether all undecided rounds are those of one batch that every node was sent, and none has answered.
// Then nothing is decided before a node has answered that is not an early one: the reader need not wake up sooner.
func (l *rounds) isFresh() bool {
	b := l.last
	return b != nil && b.undecided == l.undecided && b.to == 0 && !b.replied && b.gone == 0 && b.quarantined == 0 && b.owed == 1
}

// fail decides an acquire sent to no node.
func (l *rounds) fail(op *Op, nonvoters quorum.Set) {
	l.nodes.pulse.see(maxTimeout) // it looks after callbacks, too
	l.nodes.Want()
	op.Tally.Reset(l.nodes.quorum)
	for node := range (nonvoters & l.nodes.quorum.Nodes()).All() {
		err := l.nodes.Fault(node)
		if err == nil {
			err = conn.ErrQuarantined
		}
		op.Tally.Record(node, quorum.Failed)
		op.Failures = append(op.Failures, Failure{node, err})
		l.observe(node, Acquire, quorum.Failed, err)
	}
	op.Err, op.Absent = ErrNoQuorum, quorum.Everything
	op.advance(decided)
	l.decided = append(l.decided, decision{op: op})
}

// expire ends what was not answered in time, and the calls with an ended context.
func (l *rounds) expire(now clock.Instant) {
	for i := len(l.inFlight) - 1; i >= 0; i-- {
		b := l.inFlight[i]
		l.checkContexts(b)
		b.expire(now, l.queue.depth.Load())
		if b.undecided == 0 && b.passed {
			b.listed = false
			last := len(l.inFlight) - 1
			l.inFlight[i] = l.inFlight[last]
			l.inFlight[last] = nil
			l.inFlight = l.inFlight[:last]
		}
	}
	nonvoters := quorum.Set(0)
	if l.nodes.lacking.Load() { // else an acquire is to find out
		nonvoters = l.nodes.nonvoters()
	}
	l.checkWaiting(scanWaiting, nonvoters)
}

// checkContexts ends the calls of b with an ended context. A claim takes the call from its round, so no vote can end
// it too.
func (l *rounds) checkContexts(b *batch) {
	for i := range b.rounds {
		r := &b.rounds[i]
		if r.op == nil || r.ended == nil || !IsClosed(r.ended) || !r.op.claim(r.life, idle) {
			continue
		}
		op := r.op
		if op.Kind == Acquire {
			op.Absent = r.absent
			l.cleanups.cleanUp(op)
		}
		l.finish(op)
	}
}

// scanWaiting is how many queued operations are looked at in a turn.
const scanWaiting = 2048

// checkWaiting does the same for n unsent operations. A release keeps its place in the queue: its caller has gone, but
// it is sent, and before any later acquire. While too few nodes can vote it also fails the acquires, whether the window
// is open or not. Sent, they would only have to be cleaned up after, thousands of times a second.
func (l *rounds) checkWaiting(n int, nonvoters quorum.Set) {
	var ended, vain list
	l.queue.scan(n, func(op *Op) {
		switch hasEnded := IsClosed(op.ended); {
		case op.Kind == Acquire && l.nodes.lacking.Load() && !hasEnded:
			l.queue.unlink(op, sending)
			vain.push(op)
			return
		case !hasEnded:
			return
		case op.Kind == Release:
			l.queue.replace(op, &l.cleanups.of(op).Op)
		default:
			l.queue.unlink(op, idle)
		}
		ended.push(op)
	})
	for op := ended.pop(); op != nil; op = ended.pop() {
		l.finish(op)
	}
	for op := vain.pop(); op != nil; op = vain.pop() {
		l.fail(op, nonvoters)
	}
}

// finish ends a call because its context has ended.
func (l *rounds) finish(op *Op) {
	op.Err = context.Canceled
	l.queue.depth.Add(-1)
	l.counters.count(op, cancelled)
	op.Done.Complete(op)
}
