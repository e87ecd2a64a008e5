package engine

import (
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/quorum"
)

// batch is the operations of one write, in wire order, and their votes. It
// outlives its operations: an operation leaves when it is settled, the batch
// stays until the last node has answered.
type batch struct {
	engine *Engine
	rounds []round
	absent []uint64 // by round: Op.Absent
	groups []group  // of rounds
	first  wire
	others []*wire // where the nodes speak several dialects; more than are in use
	owed   int     // wires in use that a node has yet to answer

	undecided int // rounds without a verdict
	answered  int // nodes that have answered all of it, or failed
	failed    int // of them, those that failed
	passed    bool
	probe     bool // measures the round trip
	held      int  // retries that still need Buf and rounds
	listed    bool // in Engine.flying, where a batch that is used again may still be

	sentAt   time.Duration
	deadline time.Duration // of the most impatient round
	longest  time.Duration // TTL

	cause   []error // by node: why its last failed vote failed
	unsent  uint64  // by node, a bit each: no byte of it was written there
	guarded uint64  // by node, a bit each: it has no vote, but in releases
}

// round is the vote on one operation.
type round struct {
	op      *Op // nil once settled
	life    uint64
	timeout time.Duration
	watched bool // op is a Call whose context may end
	tally   quorum.Tally
}

// group is rounds of one kind that follow each other and may be merged.
type group struct {
	kind         Kind
	first, count int
}

// add appends op's round.
func (b *batch) add(op *Op) {
	r := round{op: op, life: op.state.Load()&^phaseMask | flying, timeout: op.Timeout}
	if c, ok := op.Done.(*Call); ok {
		r.watched = c.ctx.Done() != nil
	}
	r.tally.Reset(b.engine.nodes)
	b.rounds = append(b.rounds, r)
	b.absent = append(b.absent, op.Absent)
	b.undecided++
	b.deadline = min(b.deadline, op.Timeout) // an instant once it is sent
	b.longest = max(b.longest, op.TTL)
}

// translate writes the commands, once in each dialect, and links the wires to
// the list that goes to the fleet.
func (b *batch) translate(dialects []conn.Dialect) {
	var d conn.Dialect // for when no node is up
	if len(dialects) > 0 {
		d = dialects[0]
	}
	last := &b.first
	last.write(b.groups, d)
	for i := 1; i < len(dialects); i++ {
		if i > len(b.others) {
			b.others = append(b.others, newWire(b))
		}
		w := b.others[i-1]
		w.write(b.groups, dialects[i])
		last.Next, last = &w.Batch, w
	}
	last.Next = nil
	b.owed = max(1, len(dialects))
}

// answer counts one node as done with the batch.
func (b *batch) answer() {
	b.answered++
	b.pass()
}

// pass lets the batch leave the gate once that makes no difference to it.
func (b *batch) pass() {
	if !b.passed && (b.undecided == 0 || b.answered >= b.engine.quorum) {
		b.passed = true
		b.engine.gate.leave(b)
	}
}

func (b *batch) recycle() {
	if b.owed == 0 && b.held == 0 {
		b.engine.recycle(b)
	}
}

// vote records one node's vote in one round.
func (b *batch) vote(node, i int, o quorum.Outcome) {
	r := &b.rounds[i]
	b.observe(node, i, o)
	if r.tally.Record(node, o) != quorum.Pending && r.op != nil {
		b.decide(i, r)
	}
}

// fail records failed votes in rounds that follow each other, and why.
func (b *batch) fail(node, first, count int, err error) {
	b.cause[node] = err
	for i := first; i < first+count; i++ {
		b.vote(node, i, quorum.Failed)
	}
}

// decide ends a round: its operation, if it is still there, joins the settled.
func (b *batch) decide(i int, r *round) {
	op := r.op
	r.op = nil
	b.undecided--
	b.engine.undecided--
	if op.claim(r.life) {
		op.batch, op.round = b, i
		b.engine.settled.push(op)
	}
}

// expire fails the nodes that have not answered a round in time.
func (b *batch) expire(now time.Duration) {
	if b.undecided == 0 || now < b.deadline {
		return
	}
	b.deadline = never
	for i := range b.rounds {
		r := &b.rounds[i]
		if r.op == nil {
			continue
		}
		if due := b.sentAt + r.timeout; now < due {
			b.deadline = min(b.deadline, due)
			continue
		}
		for node := range b.engine.nodes {
			if _, voted := r.tally.Outcome(node); !voted {
				b.fail(node, i, 1, errTimeout)
			}
		}
	}
	b.pass()
}

const never = time.Duration(1<<63 - 1)
