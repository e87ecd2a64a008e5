package engine

import (
	"errors"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// batch is the operations of one write, in wire order, and their votes. It
// outlives its operations: an operation leaves when it is settled, the batch
// stays until the last node has answered.
type batch struct {
	conn.Batch
	engine *Engine
	rounds []round
	spans  []span // one for each reply

	undecided int // rounds without a verdict
	answered  int // nodes that have answered all of it, or failed
	failed    int // of them, those that failed
	passed    bool
	probe     bool // measures the round trip
	held      int  // retries that still need Buf and rounds
	settled   bool // by every node
	listed    bool // in Engine.flying, where a batch that is used again may still be

	sentAt   time.Duration
	deadline time.Duration // of the most impatient round

	cause  []error // by node: why its last failed vote failed
	unsent uint64  // by node, a bit each: no byte of it was written there
}

// round is the vote on one operation.
type round struct {
	op      *Op // nil once settled
	life    uint64
	timeout time.Duration
	watched bool // op is a Call whose context may end
	tally   quorum.Tally
}

// span is the rounds that one reply answers, and the command's place in Buf.
type span struct {
	kind         Kind
	first, count int
	from, to     int
}

// open begins a command that answers count rounds.
func (b *batch) open(kind Kind, count int) {
	b.spans = append(b.spans, span{kind: kind, first: len(b.rounds), count: count, from: len(b.Buf)})
}

// add appends op's round to the command.
func (b *batch) add(op *Op) {
	r := round{op: op, life: op.state.Load()&^phaseMask | flying, timeout: op.Timeout}
	if c, ok := op.Done.(*Call); ok {
		r.watched = c.ctx.Done() != nil
	}
	r.tally.Reset(b.engine.nodes)
	b.rounds = append(b.rounds, r)
	b.undecided++
	b.deadline = min(b.deadline, op.Timeout) // an instant once it is sent
}

// close ends the command.
func (b *batch) close() {
	b.spans[len(b.spans)-1].to = len(b.Buf)
}

// Reply implements conn.Owner.
func (b *batch) Reply(node, i int, v *resp.Value) error {
	err := b.count(node, &b.spans[i], v, true)
	if i == len(b.spans)-1 {
		b.answer()
	}
	return err
}

// Fail implements conn.Owner.
func (b *batch) Fail(node, i int, err error) {
	if i == 0 && errors.Is(err, conn.ErrNotSent) {
		b.unsent |= 1 << uint(node)
	}
	for ; i < len(b.spans); i++ {
		b.failSpan(node, &b.spans[i], err)
	}
	b.failed++
	b.answer()
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

// Settled implements conn.Owner.
func (b *batch) Settled() {
	b.settled = true
	b.recycle()
}

func (b *batch) recycle() {
	if b.settled && b.held == 0 {
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
				b.cause[node] = errTimeout
				b.vote(node, i, quorum.Failed)
			}
		}
	}
	b.pass()
}

const never = time.Duration(1<<63 - 1)
