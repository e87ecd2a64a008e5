package engine

import (
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// batch holds the operations of one write, in wire order, and their votes. It outlives its operations: an operation
// leaves once it is decided, the batch stays until the last node has answered.
type batch struct {
	votes
	runs   []run      // of rounds
	to     quorum.Set // the only node that it is for, a handoff; 0: all
	probes bool       // of a handoff: the node refused releases when it was sent
	first  wire
	others []*wire // where the nodes want several forms; more than are in use
	owed   int     // wires and errands in use, still to be answered by a node

	done   quorum.Set    // nodes that have answered all of it or failed
	gone   quorum.Set    // nodes that have failed, also before they are done
	open   []uint16      // by node: its wire and errands still open
	left   bool          // it has left the window
	listed bool          // in rounds.inFlight, perhaps since an earlier use
	latest clock.Instant // when the time of its last round is up

	own struct { // memory for a small one
		bytes  [slabBytes]byte // of commands
		rounds [slabRounds]round
		spans  [slabRounds]span
		runs   [slabRounds]run
	}
}

// run is successive rounds of one kind, to be merged.
type run struct {
	kind         Kind
	first, count int
}

// write encodes the commands, once in each form, and links the wires to the list for the fleet.
func (b *batch) write(operands []command.Operand, forms []conn.Form) {
	var f conn.Form // for when no node is up
	if len(forms) > 0 {
		f = forms[0]
	}
	last := &b.first
	last.write(b.runs, operands, f)
	for i := 1; i < len(forms); i++ {
		if i > len(b.others) {
			b.others = append(b.others, newWire(b))
		}
		w := b.others[i-1]
		w.write(b.runs, operands, forms[i])
		last.Next, last = &w.Batch, w
	}
	last.Next = nil
	b.owed = max(1, len(forms))
}

// tryLeave lets the batch leave the in-flight window, if it is time. It does so nowhere else.
//
// It leaves when a quorum of nodes is done with it, or when all its rounds are decided. But nodes that are down fail a
// batch at once, and this must not make room for the next one: the live nodes would be sent more than they can answer,
// and be cut off for it. So one of the live nodes must have replied, and nodes reply in order, or its time must be up.
func (b *batch) tryLeave(isLate bool) {
	q := b.nodes.quorum
	leaves := isLate || b.done == q.Nodes() || b.replied && (b.undecided == 0 || q.IsQuorum(b.done))
	if leaves && !b.left {
		b.left = true
		b.window.leave(&b.passage, b.nodes.clock.Now(), q.IsQuorum(b.done&^b.gone))
	}
}

// ended counts a wire or an errand of one node as answered or failed. A node is done
// with the batch when all have ended.
func (b *batch) ended(node int) {
	b.open[node]--
	if b.open[node] == 0 {
		b.done.Add(node)
	}
}

// wire holds the commands of a batch in one form, and the rounds of each reply. Rounds have the same order in all forms.
// An errand is a wire for one node alone.
type wire struct {
	conn.Batch
	batch  *batch
	spans  []span
	errand bool
	byText bool // it calls scripts by their text
}

// span holds the rounds answered by one reply, and the command's place in Buf.
type span struct {
	kind         Kind
	form         command.Form
	first, count int
	from, to     int
}

func newWire(b *batch) *wire {
	w := &wire{batch: b}
	w.Owner, w.Counter, w.Doubter = w, w, w
	return w
}

// write encodes the runs of the batch.
func (w *wire) write(runs []run, operands []command.Operand, f conn.Form) {
	w.Buf, w.spans, w.Form = w.Buf[:0], w.spans[:0], f
	for _, g := range runs {
		w.append(g.kind, g.first, operands[g.first:g.first+g.count], command.MaxKeys)
	}
	w.Replies = len(w.spans)
	w.Usual = w.Usual[:0]
	for _, s := range w.spans {
		var has bool
		w.Usual, has = command.AppendUsual(w.Usual, s.kind, s.form, s.count)
		if !has {
			w.Usual = w.Usual[:0]
			return
		}
	}
}

// append writes commands for the rounds from first on. A script call takes at most merge of them.
func (w *wire) append(kind Kind, first int, operands []command.Operand, merge int) {
	for len(operands) > 0 {
		form := w.form().For(kind, &operands[0])
		n := command.Merge(kind, form, operands, merge)
		from := len(w.Buf)
		w.Buf = command.Append(w.Buf, kind, form, operands[:n], w.batch.fence)
		if w.byText {
			w.Buf = command.ByText(w.Buf, from)
		}
		w.spans = append(w.spans, span{kind: kind, form: form, first: first, count: n, from: from, to: len(w.Buf)})
		first, operands = first+n, operands[n:]
	}
}

func (w *wire) form() command.Form { return command.Form(w.Form) }

// An errand is commands for one node alone: the repeat of a command, or what the node is owed (hints). Its replies
// vote in the rounds of a batch, like the replies to the batch's own wires.
//
// An errand reaches the node after later batches. A release acts on its own attempt's token alone, so it is harmless. An
// acquire by script is not repeated once its attempt is over, and an extend not once the release of its lock was asked
// for: the release may have been sent, and would come first. A key that stays (Op.Stay) would stay for longer then.

// again sends the rounds of a command once more, in a form of it, by script calls of at most merge keys, by the script's
// text where the node may not know it.
func (w *wire) again(node int, s *span, f command.Form, merge int, byText bool) {
	b := w.batch
	operands := b.decoder.Read(s.kind, w.Buf[s.from:s.to])
	var errand *wire
	for i := 0; i < len(operands); {
		first := i
		for i < len(operands) && !b.isOver(s.first+i) {
			i++
		}
		if i > first {
			if errand == nil {
				errand = b.errand(f, byText)
				errand.Votes = true
			}
			errand.append(s.kind, s.first+first, operands[first:i], merge)
		}
		for ; i < len(operands) && b.isOver(s.first+i); i++ {
			b.rounds[s.first+i].absent.Add(node)
			b.failed(node, s.first+i, errOvertaken)
		}
	}
	if errand != nil {
		errand.sendTo(node)
	}
}

// errand is one in rounds of b, to be written by append.
func (b *batch) errand(f command.Form, byText bool) *wire {
	w := newWire(b)
	w.Form, w.errand, w.byText = conn.Form(f), true, byText
	return w
}

func (w *wire) sendTo(node int) {
	w.Replies = len(w.spans)
	w.batch.owed++
	w.batch.open[node]++
	w.batch.nodes.SendTo(node, &w.Batch)
}

const (
	slabBytes  = 512
	slabRounds = 4
)

// slab is how many batches are made at once. Tests that count them set it to 1.
var slab = 32

// batch returns an empty one.
func (lg *ledger) batch() *batch {
	if len(lg.free.all) == 0 {
		lg.makeBatches()
	}
	b := lg.free.pop()
	b.reset()
	return b
}

// makeBatches adds to the free batches, a slab at a time. A batch is in use until the slowest node has answered, and
// with little load it carries one operation. If batches were made one by one, each new peak of this node's delay
// would show as allocations.
func (lg *ledger) makeBatches() {
	batches, n := make([]batch, slab), lg.nodes.n
	causes, open := make([]error, slab*n), make([]uint16, slab*n)
	for i := range batches {
		b := &batches[i]
		b.ledger, b.first.batch, b.first.Owner, b.first.Counter, b.first.Doubter = lg, b, &b.first, &b.first, &b.first
		b.cause, b.open = causes[i*n:(i+1)*n:(i+1)*n], open[i*n:(i+1)*n:(i+1)*n]
		b.shrink()
		lg.free.push(b)
	}
}

// recycle takes back a batch once every node has answered, or failed. Its rounds and causes stay: operations decided in
// this sweep still read them.
func (lg *ledger) recycle(b *batch) {
	lg.nodes.unanswered.Leave()
	to := b.to
	lg.free.push(b)
	if to != 0 { // it was a handoff. The next follows when the operations decided in this sweep are complete
		lg.hints[to.Least()].out = false
		lg.ready |= to
	}
}

// reset empties a batch for its next use.
func (b *batch) reset() {
	b.votes.reset()
	b.runs = b.runs[:0]
	for node := range b.open {
		b.open[node] = 1
	}
	b.done, b.gone, b.to, b.left = 0, 0, 0, false
}
