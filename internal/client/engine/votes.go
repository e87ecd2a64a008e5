package engine

import (
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/quorum"
)

// decision is a decided operation: by the votes of a round, or without any.
type decision struct {
	op    *Op
	votes *votes // nil: it was sent to no node
	round int
}

// observe counts a vote, and has it reported.
func (lg *ledger) observe(node int, kind Kind, o quorum.Outcome, err error) {
	lg.counters.votes[node][o]++
	if lg.onVote != nil {
		lg.callbacks.add(votesCast.For(lg.onVote, Vote{node, kind, o, err}))
	}
}

// votes holds the rounds of one batch, and the votes in them.
type votes struct {
	*ledger
	passage
	rounds    []round
	undecided int  // rounds without a verdict
	repairs   bool // the key of a lock with a Repairer is absent from a node

	deadline clock.Instant // of the most impatient round
	doubt    clock.Instant // when lost rounds are decided without the missing votes

	cause       []error    // by node: why it has not answered the rest
	failures    []failure  // single failed votes
	answers     []answer   // to fenced acquires, other than OK
	quarantined quorum.Set // nodes without a vote in some round
}

// round is the vote on one operation.
type round struct {
	op          *Op // nil once decided
	life        uint64
	timeout     time.Duration
	waited      time.Duration // in the queue, up to mostPatience timeouts
	limit       Limit         // of the caller of a call
	tally       quorum.Tally
	absent      quorum.Set // nodes where no key has the token
	denied      *atomic.Bool
	repairer    Repairer
	repairLife  uint64     // of repairer
	failures    int32      // the last of them in batch.failures, counted from 1
	answer      int32      // likewise in batch.answers
	quarantined quorum.Set // nodes without a vote, but in a release
	gated       quorum.Set // nodes that denied a shared acquire by a gate alone
	stale       quorum.Set // nodes that deny nothing but the number of a fencing token: they have no vote until countStale
	kind        Kind       // of op, which may be its user's again
	refused     uint8      // how often a node has refused it, where it is a hint for this node
}

// failure is why one vote of one round has failed.
type failure struct {
	node, before int32 // before is the one before it in the same round
	err          error
}

// answer is that of a node to a fenced acquire, linked like failure.
type answer struct {
	Answer
	before int32
}

// add appends op's round.
func (v *votes) add(op *Op) {
	r := round{op: op, life: op.state.Load()&^phaseMask | inFlight, timeout: op.Timeout, limit: op.limit, absent: op.Absent, kind: op.Kind}
	switch op.Kind {
	case Acquire:
		r.absent, r.denied = 0, op.Denied // absent is of an earlier attempt
	case Extend:
		r.absent = 0
		r.repairer, r.repairLife = op.Repairer, op.Life
	}
	r.tally.Reset(v.nodes.quorum)
	v.rounds = append(v.rounds, r)
	v.undecided++
	v.soonest = min(v.soonest, op.Timeout)
}

// granted records that a node has granted the rounds from first to upto, as nodes nearly always do. A vote that concerns
// the tally alone is recorded here, every other one by answered.
func (v *votes) granted(node, first, upto int) {
	plain, by := v.onVote == nil && !v.quarantined.Has(node), quorum.Only(node)
	for i := first; i < upto; i++ {
		r := &v.rounds[i]
		if !plain || r.stale != 0 || r.tally.Verdict() == quorum.Lost || r.tally.Outcome(node) != 0 {
			v.answered(node, i, true, r.kind)
			continue
		}
		v.counters.votes[node][quorum.Granted]++
		if r.tally.Grant(by) == quorum.Won && r.op != nil {
			v.decide(i, r)
		}
	}
}

// vote records one node's vote in one round.
func (v *votes) vote(node, i int, o quorum.Outcome, err error) {
	r := &v.rounds[i]
	if r.kind != Look && r.tally.Outcome(node) == 0 {
		v.observe(node, r.kind, o, err)
	}
	if r.tally.Record(node, o) != quorum.Pending && r.op != nil && (r.tally.Count(0) == 0 || !v.mayBeSplit(r)) {
		v.decide(i, r)
	}
	if r.stale != 0 {
		v.countStale(i, r)
	}
}

// mayBeSplit reports whether a missing vote may show that a lost acquire has split the votes: until now nodes have
// only denied it. It waits for this vote three times as long as it has taken, to within a tick. Otherwise several
// callers, each first at a node far from it, would all report a holder. Denials that leave room for a quorum, as where
// other nodes have failed, show no holder: the missing votes have all of their time then.
func (v *votes) mayBeSplit(r *round) bool {
	t := &r.tally
	if t.Verdict() != quorum.Lost || r.kind != Acquire || r.gated != 0 || t.Count(quorum.Granted) > 0 || v.nodes.quorum.Blocks(t.Nodes(quorum.Failed)) {
		return false
	}
	if v.isDenied(r) {
		now := v.nodes.clock.Now()
		v.doubt = now.Add(3 * now.Sub(v.sentAt))
		v.deadline = min(v.deadline, v.doubt)
	}
	return true
}

// isDenied reports whether denials alone rule out a quorum: the key has a holder, or several have split the votes.
func (v *votes) isDenied(r *round) bool { return v.nodes.quorum.Blocks(r.tally.Nodes(quorum.Denied)) }

// countStale counts the votes of stale nodes, to which this token is too small, once they and the nodes that
// granted are a quorum, or no other node will answer. The next attempt has a token above all that these nodes know. If it
// began earlier, it might be too small for another node of the quorum too, and so on.
func (v *votes) countStale(i int, r *round) {
	t := &r.tally
	if !v.nodes.quorum.IsQuorum(t.Nodes(quorum.Granted)|r.stale) && r.stale != t.Nodes(0) {
		return
	}
	nodes := r.stale
	r.stale = 0
	for node := range nodes.All() {
		v.failed(node, i, errStale)
	}
}

// answered records a node's answer in one round.
func (v *votes) answered(node, i int, granted bool, kind Kind) {
	if kind.HasTTL() && !granted {
		v.rounds[i].absent.Add(node)
		v.repairs = v.repairs || v.rounds[i].repairer != nil
	}
	switch {
	case kind != Release && v.rounds[i].quarantined.Has(node):
		// It may have lost keys.
		v.failed(node, i, conn.ErrQuarantined)
	case granted:
		v.vote(node, i, quorum.Granted, nil)
	default:
		if denied := v.rounds[i].denied; denied != nil {
			denied.Store(true)
		}
		v.vote(node, i, quorum.Denied, nil)
	}
}

// fenced records a node's answer to a fenced acquire or extend. Unless it is OK nothing was written.
func (v *votes) fenced(node, i int, kind Kind, a fencing.Answer) {
	if kind == Acquire && a.Code != fencing.OK {
		r := &v.rounds[i]
		r.absent.Add(node)
		v.answers = append(v.answers, answer{Answer{node, a}, r.answer})
		r.answer = int32(len(v.answers))
	}
	switch a.Code {
	case fencing.OK, fencing.Held, fencing.Gone:
		v.answered(node, i, a.Code == fencing.OK, kind)
		return
	case fencing.Stale, fencing.Low:
		if r := &v.rounds[i]; r.tally.Outcome(node) == 0 {
			r.stale.Add(node)
			v.countStale(i, r)
		}
		return
	case fencing.Amnesia:
		v.failed(node, i, errForgotten)
	case fencing.Foreign:
		v.failed(node, i, errForeign)
	default:
		v.failed(node, i, ErrMisfit)
	}
	v.observer.NodeChanged(node, NoVote, a)
}

// failed records a failed vote in one round, and why.
func (v *votes) failed(node, i int, err error) {
	r := &v.rounds[i]
	if r.tally.Outcome(node) != 0 {
		return
	}
	v.failures = append(v.failures, failure{int32(node), r.failures, err})
	r.failures = int32(len(v.failures))
	v.vote(node, i, quorum.Failed, err)
}

// lost records failed votes in successive rounds, where a node will not answer any more.
func (v *votes) lost(node, first, count int, err error) {
	v.cause[node] = err
	for i := first; i < first+count; i++ {
		v.vote(node, i, quorum.Failed, err)
	}
}

// causeOf returns why a node's vote in a round has failed.
func (v *votes) causeOf(node, i int) error {
	for at := v.rounds[i].failures; at > 0; {
		f := &v.failures[at-1]
		if int(f.node) == node {
			return f.err
		}
		at = f.before
	}
	return v.cause[node]
}

// decide ends a round: its operation, if it is still there, joins the decided.
func (v *votes) decide(i int, r *round) {
	op := r.op
	r.op = nil
	v.undecided--
	v.ledger.undecided--
	if op.claim(r.life, decided) {
		v.decided = append(v.decided, decision{op, v, i})
	}
}

// mostPatience is how many timeouts the nodes have for a round at most.
const mostPatience = 20

// expire fails the nodes without an answer to a round in time.
func (v *votes) expire(now clock.Instant, underWay int64) {
	if v.undecided > 0 && now >= v.deadline {
		v.deadline = clock.Never
		for i := range v.rounds {
			v.expireRound(i, now, underWay)
		}
	}
}

// patience is how long the nodes have for a round, with so many operations under way: longer in a burst, which may
// starve the nodes themselves.
func (r *round) patience(underWay int64) time.Duration {
	return max(r.waited, r.timeout*time.Duration(1+min(underWay/leastBound, mostPatience-1)))
}

func (v *votes) expireRound(i int, now clock.Instant, underWay int64) {
	r := &v.rounds[i]
	if r.op == nil {
		return
	}
	due, lost := v.sentAt.Add(r.patience(underWay)), r.kind == Acquire && r.tally.Verdict() == quorum.Lost && v.isDenied(r)
	if lost { // see mayBeSplit; what reads asks each node
		due = min(due, v.doubt)
	}
	switch {
	case now < due:
		v.deadline = min(v.deadline, due)
		return
	case lost:
		v.decide(i, r)
		return
	}
	for node := range v.nodes.n {
		if !r.stale.Has(node) { // it has answered, and is counted after the others
			v.failed(node, i, errTimeout) // unless it has voted
		}
	}
}

func (v *votes) failedAll(node, first, count int, err error) {
	for i := first; i < first+count; i++ {
		v.failed(node, i, err)
	}
}

// isOver reports whether a round is an attempt to acquire that is over, or an extend or a repair of a lock whose release
// was asked for.
func (v *votes) isOver(i int) bool {
	r := &v.rounds[i]
	switch {
	case r.repairer != nil:
		return !r.repairer.IsHeld(r.repairLife)
	case r.kind == Acquire:
		return r.op == nil || r.op.state.Load() != r.life
	}
	return false
}

// reset empties the votes for the next use of their batch.
func (v *votes) reset() {
	v.rounds = v.rounds[:0]
	clear(v.cause)
	clear(v.failures)
	v.failures = v.failures[:0]
	clear(v.answers)
	v.answers = v.answers[:0]
	v.replied, v.repairs, v.soonest = false, false, clock.Forever
}
