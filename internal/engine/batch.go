package engine

import (
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/fleet"
	"github.com/redlock-go/redlock/quorum"
)

// batch is the operations of one write, in wire order, and their votes. It
// outlives its operations: an operation leaves when it is decided, the batch
// stays until the last node has answered.
type batch struct {
	engine *Engine
	rounds []round
	groups []group // of rounds
	first  wire
	others []*wire // where the nodes want several forms; more than are in use
	owed   int     // wires and errands in use that a node has yet to answer

	undecided int        // rounds without a verdict
	done      quorum.Set // nodes that have answered all of it or failed
	gone      quorum.Set // nodes that have failed, also before they are done
	open      []uint16   // by node: its wire and errands that have not ended
	replied   bool       // a node has answered something
	passed    bool       // it has left the window
	ahead     int        // operations in the window when it was sent, with its own
	probe     bool       // measures the round trip
	listed    bool       // in Engine.inFlight, where a batch that is used again may still be
	lacking   bool       // a node lacks the key of an extend
	isHint    bool       // releases that one node missed; without operations, and not counted
	hintOf    int        // that node
	later     bool       // some of them were refused for now

	sentAt   time.Duration
	soonest  time.Duration // shortest timeout
	deadline time.Duration // of the most impatient round
	latest   time.Duration // longest timeout; becomes an instant when the batch is sent
	doubt    time.Duration // when lost rounds are decided without the votes that are missing
	longest  time.Duration // TTL

	answers     []answer   // of nodes, to operations that read
	cause       []error    // by node: why it has not answered the rest
	failures    []failure  // single failed votes
	refusals    []refusal  // answers to fenced acquires, other than OK
	quarantined quorum.Set // by node: it has no vote, but in releases
}

// round is the vote on one operation.
type round struct {
	op         *Op // nil once decided
	life       uint64
	timeout    time.Duration
	waited     time.Duration   // in the queue, up to mostPatience timeouts
	ended      <-chan struct{} // of the context, where op is a Call
	tally      quorum.Tally
	absent     quorum.Set // nodes where no key has the token
	repairer   Repairer
	repairLife uint64     // of repairer
	failures   int32      // the last of them in batch.failures, counted from 1
	refusal    int32      // likewise in batch.refusals
	stale      quorum.Set // nodes that have refused nothing but the number of a fencing token
	kind       Kind       // of op, which may be its user's again
}

// failure is why one vote of one round has failed.
type failure struct {
	node, before int32 // before is the one before it in the same round
	err          error
}

// refusal is a node's answer to a fenced acquire, in the way of failure.
type refusal struct {
	Refusal
	before int32
}

// Value is what a node has answered about a key.
type Value struct {
	Node int
	command.Value
}

// answer is the Value of a round.
type answer struct {
	round int
	Value
}

// group is rounds of one kind that follow each other and may be merged.
type group struct {
	kind         Kind
	first, count int
}

// add appends op's round.
func (b *batch) add(op *Op) {
	r := round{op: op, life: op.state.Load()&^phaseMask | inFlight, timeout: op.Timeout, absent: op.Absent, kind: op.Kind}
	switch op.Kind {
	case Acquire:
		r.absent = 0 // of an earlier attempt
	case Extend:
		r.absent = 0
		r.repairer, r.repairLife = op.Repairer, op.Life
	}
	if c, ok := op.Done.(*Call); ok {
		r.ended = c.ended
	}
	r.tally.Reset(b.engine.quorum)
	b.rounds = append(b.rounds, r)
	b.undecided++
	b.soonest = min(b.soonest, op.Timeout)
	b.latest = max(b.latest, op.Timeout)
	b.longest = max(b.longest, op.TTL)
}

// write encodes the commands, once in each form, and links the wires to
// the list that goes to the fleet.
func (b *batch) write(operands []command.Operand, forms []fleet.Form) {
	var f fleet.Form // for when no node is up
	if len(forms) > 0 {
		f = forms[0]
	}
	last := &b.first
	last.write(b.groups, operands, f)
	for i := 1; i < len(forms); i++ {
		if i > len(b.others) {
			b.others = append(b.others, newWire(b))
		}
		w := b.others[i-1]
		w.write(b.groups, operands, forms[i])
		last.Next, last = &w.Batch, w
	}
	last.Next = nil
	b.owed = max(1, len(forms))
}

// pass lets the batch leave the in-flight window, if it is time. This is the only
// place where it does.
//
// It leaves when a quorum of nodes is done with it, or when all its rounds are
// decided. But a batch that fails at once on nodes that are down must not make
// room for the next at once: the others would be sent more than they can answer,
// and be cut off for it. So one of them must have replied, which it does in order,
// or time must be up.
func (b *batch) pass() {
	switch {
	case b.passed:
	case b.done == b.engine.quorum.Nodes(), b.replied && (b.undecided == 0 || b.engine.quorum.IsQuorum(b.done)):
		b.leave()
	}
}

// ended counts a wire or an errand of one node as answered or failed. A node is done
// with the batch when all have ended.
func (b *batch) ended(node int) {
	if b.isHint {
		return
	}
	if b.open[node]--; b.open[node] == 0 {
		b.done.Add(node)
	}
}

func (b *batch) leave() {
	b.passed = true
	b.engine.window.leave(b)
}

func (b *batch) recycle() {
	if b.owed == 0 {
		b.engine.recycle(b)
	}
}

// vote records one node's vote in one round.
func (b *batch) vote(node, i int, o quorum.Outcome, err error) {
	r := &b.rounds[i]
	if !b.isHint && !r.kind.Reads() && r.tally.Outcome(node) == 0 {
		e := b.engine
		if e.counters.votes[node][o]++; e.onVote != nil {
			e.callbacks.vote(vote{node, b.kindOf(i), o, err})
		}
	}
	if r.tally.Record(node, o) != quorum.Pending && r.op != nil && (r.tally.Count(0) == 0 || !r.kind.HasValue() && !b.mayBeSplit(r)) {
		b.decide(i, r)
	}
	if r.stale != 0 {
		b.countStale(i, r)
	}
}

// mayBeSplit reports whether a missing vote may show that a lost acquire has split the votes: until
// now nodes have only denied it. It waits for that vote three times as long as it has taken, to within
// a tick: several callers, each first at a node far from it, would all report a holder else.
func (b *batch) mayBeSplit(r *round) bool {
	t := &r.tally
	if t.Verdict() != quorum.Lost || r.kind != Acquire || t.Count(quorum.Granted) > 0 || b.engine.quorum.Blocks(t.Nodes(quorum.Failed)) {
		return false
	}
	b.doubt = 4*b.engine.clock.Now() - 3*b.sentAt
	b.deadline = min(b.deadline, b.doubt)
	return true
}

// countStale has the nodes vote that would have granted a larger token, once they are a quorum
// with those that have granted this one, or no other node will answer. The attempt that
// follows is above all that these know: if it began before, another of the quorum might
// refuse it too, and so on.
func (b *batch) countStale(i int, r *round) {
	t := &r.tally
	if !b.engine.quorum.IsQuorum(t.Nodes(quorum.Granted)|r.stale) && r.stale != t.Nodes(0) {
		return
	}
	nodes := r.stale
	r.stale = 0
	for node := range nodes.All() {
		b.refused(node, i, errStale)
	}
}

// answered records a node's answer in one round.
func (b *batch) answered(node, i int, granted bool, kind Kind) {
	if kind.HasTTL() && !granted {
		b.rounds[i].absent.Add(node)
		b.lacking = b.lacking || kind == Extend
	}
	switch {
	case kind.NeedsVote() && b.quarantined.Has(node):
		// It has restarted, and may have lost keys.
		b.refused(node, i, conn.ErrQuarantined)
	case granted:
		b.vote(node, i, quorum.Granted, nil)
	default:
		b.vote(node, i, quorum.Denied, nil)
	}
}

// fenced records a node's answer to a fenced acquire or extend. Where it is not OK nothing
// was written.
func (b *batch) fenced(node, i int, kind Kind, a fencing.Answer) {
	if kind == Acquire && a.Code != fencing.OK {
		r := &b.rounds[i]
		r.absent.Add(node)
		b.refusals = append(b.refusals, refusal{Refusal{node, a}, r.refusal})
		r.refusal = int32(len(b.refusals))
	}
	switch a.Code {
	case fencing.OK, fencing.Held, fencing.Gone:
		b.answered(node, i, a.Code == fencing.OK, kind)
		return
	case fencing.Stale, fencing.Low:
		if r := &b.rounds[i]; r.tally.Outcome(node) == 0 {
			r.stale.Add(node)
			b.countStale(i, r)
		}
		return
	case fencing.Amnesia:
		b.refused(node, i, errForgotten)
	case fencing.Foreign:
		b.refused(node, i, errForeign)
	default:
		b.refused(node, i, errMisfit)
	}
	b.engine.observer.NodeChanged(node, NoVote, a)
}

// refused records a failed vote in one round, and why.
func (b *batch) refused(node, i int, err error) {
	r := &b.rounds[i]
	if r.tally.Outcome(node) != 0 {
		return
	}
	b.failures = append(b.failures, failure{int32(node), r.failures, err})
	r.failures = int32(len(b.failures))
	b.vote(node, i, quorum.Failed, err)
}

// lost records failed votes in rounds that follow each other, where a node will not
// answer any more.
func (b *batch) lost(node, first, count int, err error) {
	b.cause[node] = err
	for i := first; i < first+count; i++ {
		b.vote(node, i, quorum.Failed, err)
	}
}

// causeOf returns why a node's vote in a round has failed.
func (b *batch) causeOf(node, i int) error {
	for at := b.rounds[i].failures; at > 0; {
		f := &b.failures[at-1]
		if int(f.node) == node {
			return f.err
		}
		at = f.before
	}
	return b.cause[node]
}

// decide ends a round: its operation, if it is still there, joins the decided.
func (b *batch) decide(i int, r *round) {
	op := r.op
	r.op = nil
	b.undecided--
	b.engine.undecided--
	if op.claim(r.life, decided) {
		op.batch, op.round = b, i
		b.engine.decided.push(op)
	}
}

// mostPatience is how many timeouts the nodes have for a round at most.
const mostPatience = 20

// expire fails the nodes that have not answered a round in time.
func (b *batch) expire(now time.Duration) {
	if b.undecided > 0 && now >= b.deadline {
		b.deadline = clock.Never
		for i := range b.rounds {
			b.expireRound(i, now)
		}
	}
	if b.pass(); !b.passed && b.undecided == 0 && now >= b.latest {
		b.leave()
	}
}

// patience is how long the nodes have for a round, while so many operations are under way: in a burst,
// which may starve the nodes themselves, longer.
func (r *round) patience(underWay int64) time.Duration {
	return max(r.waited, r.timeout*time.Duration(1+min(underWay/leastBound, mostPatience-1)))
}

func (b *batch) expireRound(i int, now time.Duration) {
	r := &b.rounds[i]
	if r.op == nil {
		return
	}
	due, lost := b.sentAt+r.patience(b.engine.depth.Load()), r.kind == Acquire && r.tally.Verdict() == quorum.Lost
	if lost { // see mayBeSplit; what reads asks each node
		due = min(due, b.doubt)
	}
	switch {
	case now < due:
		b.deadline = min(b.deadline, due)
		return
	case lost:
		b.decide(i, r)
		return
	}
	for node := range b.engine.nodes {
		if !r.stale.Has(node) { // it has answered, and is counted after the others
			b.refused(node, i, errTimeout) // unless it has voted
		}
	}
}

// kindOf is the kind of a round. Its operation may be gone.
func (b *batch) kindOf(i int) Kind {
	for g := len(b.groups) - 1; g > 0; g-- {
		if b.groups[g].first <= i {
			return b.groups[g].kind
		}
	}
	return b.groups[0].kind
}

const (
	keepBuffers = 2 << 20 // bytes of buffers kept for batches to come

	slabBytes  = 512 // of commands, in each batch of a slab
	slabRounds = 4   // in each
)

// slab is how many batches are made at once. Tests that count them set it to 1.
var slab = 32

// batch returns an empty one.
func (e *Engine) batch() *batch {
	if n := len(e.free); n > 0 {
		b := e.free[n-1]
		e.free = e.free[:n-1]
		e.kept -= b.size()
		b.reset()
		return b
	}
	e.makeBatches()
	return e.batch()
}

// makeBatches adds to the free batches, a slab at a time. A batch is in use until the
// slowest node has answered, and with little load it carries one operation. If batches
// were made one by one, each new peak of that node's delay would show as allocations.
func (e *Engine) makeBatches() {
	batches := make([]batch, slab)
	bytes := make([]byte, slab*slabBytes)
	rounds := make([]round, slab*slabRounds)
	groups := make([]group, slab*slabRounds)
	spans := make([]span, slab*slabRounds)
	causes := make([]error, slab*e.nodes)
	open := make([]uint16, slab*e.nodes)
	for i := range batches {
		b := &batches[i]
		b.engine = e
		b.first.batch, b.first.Owner = b, &b.first
		b.first.Buf = bytes[i*slabBytes : i*slabBytes : (i+1)*slabBytes]
		b.first.spans = spans[i*slabRounds : i*slabRounds : (i+1)*slabRounds]
		b.rounds = rounds[i*slabRounds : i*slabRounds : (i+1)*slabRounds]
		b.groups = groups[i*slabRounds : i*slabRounds : (i+1)*slabRounds]
		b.cause = causes[i*e.nodes : (i+1)*e.nodes : (i+1)*e.nodes]
		b.open = open[i*e.nodes : (i+1)*e.nodes : (i+1)*e.nodes]
		e.keep(b)
	}
}

func (e *Engine) keep(b *batch) {
	e.kept += b.size()
	e.free = append(e.free, b)
}

// recycle takes back a batch that every node has answered, or failed.
func (e *Engine) recycle(b *batch) {
	e.batchDone()
	if b.isHint {
		e.handedOff(b)
		return
	}
	if e.kept+b.size() > keepBuffers {
		return
	}
	// Rounds and causes stay: operations decided in this sweep still read them.
	e.keep(b)
}

// batchDone counts a batch as answered by every node.
func (e *Engine) batchDone() {
	if e.unanswered--; e.unanswered == 0 && e.closing.Load() {
		select {
		case e.quiet <- struct{}{}:
		default:
		}
	}
}

// size is the bytes of its buffers.
func (b *batch) size() int {
	n := cap(b.first.Buf)
	for _, w := range b.others {
		n += cap(w.Buf)
	}
	return n
}

// reset empties a batch for its next use.
func (b *batch) reset() {
	b.rounds, b.groups = b.rounds[:0], b.groups[:0]
	clear(b.cause)
	clear(b.answers)
	b.answers = b.answers[:0]
	clear(b.failures)
	b.failures = b.failures[:0]
	clear(b.refusals)
	b.refusals = b.refusals[:0]
	for node := range b.open {
		b.open[node] = 1
	}
	b.done, b.gone, b.replied, b.passed, b.lacking = 0, 0, false, false, false
	b.soonest, b.latest, b.longest = clock.Never, 0, 0
}
