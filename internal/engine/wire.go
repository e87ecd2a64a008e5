package engine

import (
	"errors"
	"slices"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/fleet"
	"github.com/redlock-go/redlock/resp"
)

// wire is the commands of a batch in one form, and which rounds each reply
// answers. Rounds have the same order in all forms. An errand is a wire for
// one node alone.
type wire struct {
	fleet.Batch
	batch  *batch
	spans  []span
	errand bool
	loads  bool // it begins with SCRIPT LOAD, which has the first reply
}

// span is the rounds that one reply answers, and the command's place in Buf.
type span struct {
	kind         Kind
	first, count int
	from, to     int
}

// anyScript reports whether any node is asked to release by script.
func anyScript(forms []fleet.Form) bool {
	return slices.ContainsFunc(forms, func(f fleet.Form) bool { return command.Form(f).IsScript(Release) })
}

func newWire(b *batch) *wire {
	w := &wire{batch: b}
	w.Owner = w
	return w
}

// write encodes the groups of the batch.
func (w *wire) write(groups []group, operands []command.Operand, f fleet.Form) {
	w.Buf, w.spans, w.Form = w.Buf[:0], w.spans[:0], f
	for _, g := range groups {
		w.append(g.kind, g.first, operands[g.first:g.first+g.count], command.MaxKeys)
	}
	w.Replies = len(w.spans)
}

// append writes commands for the rounds from first on, of which a script call takes
// at most merge.
func (w *wire) append(kind Kind, first int, operands []command.Operand, merge int) {
	for len(operands) > 0 {
		n := command.Merge(kind, w.form(), operands, merge)
		from := len(w.Buf)
		w.Buf = command.Append(w.Buf, kind, w.form(), operands[:n], w.batch.batches.fence)
		w.spans = append(w.spans, span{kind: kind, first: first, count: n, from: from, to: len(w.Buf)})
		first, operands = first+n, operands[n:]
	}
}

func (w *wire) form() command.Form { return command.Form(w.Form) }

// Reply implements fleet.Owner.
func (w *wire) Reply(node, i int, v *resp.Value) (err error) {
	b := w.batch
	b.replied = true
	if w.loads {
		if i--; i < 0 {
			if !command.IsLoaded(v) {
				return misfit(v)
			}
			return nil
		}
	}
	err = w.count(node, &w.spans[i], v)
	w.repair(&w.spans[i])
	if i == len(w.spans)-1 {
		b.ended(node)
	}
	b.pass()
	return err
}

// Fail implements fleet.Owner.
func (w *wire) Fail(node, i int, err error) {
	b := w.batch
	if w.loads {
		i = max(0, i-1)
	}
	unsent := errors.Is(err, conn.ErrNotSent)
	for ; i < len(w.spans); i++ {
		s := &w.spans[i]
		if unsent && s.kind == Acquire {
			b.unsent(node, s.first, s.count)
		}
		if w.errand {
			b.refusedAll(node, s.first, s.count, err)
		} else {
			b.lost(node, s.first, s.count, err)
		}
		w.hint(node, s)
	}
	b.gone.Add(node)
	b.ended(node)
	b.pass()
}

// Done implements fleet.Owner.
func (w *wire) Done() {
	if w.batch.owed--; w.batch.owed == 0 {
		w.batch.batches.recycle(w.batch)
	}
}

// count turns one reply into votes. An error means that the reply does not fit
// and the stream can no longer be trusted.
func (w *wire) count(node int, s *span, v *resp.Value) error {
	if v.IsError() {
		return w.refused(node, s, v)
	}
	i, b := s.first, w.batch
	if w.form().IsFenced(s.kind) {
		if i = w.countFenced(node, s, v); i == s.first+s.count {
			return nil
		}
	} else if !w.form().IsScript(s.kind) {
		if granted, fits := command.ReadOne(s.kind, v); fits {
			if s.kind.HasValue() {
				b.answers = append(b.answers, answer{i, Value{node, command.ValueOf(v)}})
			}
			b.answered(node, i, granted, s.kind)
			return nil
		}
	} else {
		answers := &b.batches.script
		for answers.Begin(s.count, v); answers.Next(); i++ {
			b.answered(node, i, answers.Granted(), s.kind)
		}
		if answers.Fits() {
			return nil
		}
	}
	err := misfit(v)
	b.refusedAll(node, i, s.first+s.count-i, err)
	return err
}

// countFenced is count for the reply of a script of package fencing. It returns the first
// round that the reply does not fit.
func (w *wire) countFenced(node int, s *span, v *resp.Value) (i int) {
	if i = s.first; v.Kind != resp.Array || v.Null || v.Int != int64(s.count) {
		return i
	}
	for it := v.Elements(); it.Next(); i++ {
		a, fits := command.ReadFenced(it.Value())
		if !fits {
			break
		}
		w.batch.fenced(node, i, s.kind, a)
	}
	return i
}

// refused handles an error reply. Most fail the vote and leave the connection
// as it is; an error that is returned ends it. Some are answered by an errand.
//
// One caller's key must not decide the result of another. So a merged call that is
// refused, perhaps for one of its keys, is sent again in smaller calls.
func (w *wire) refused(node int, s *span, v *resp.Value) error {
	b := w.batch
	r := command.Refused(s.kind, w.form(), s.count, v.Bytes, w.loads)
	if s.kind == Acquire && r.Unapplied {
		b.rounds[s.first].absent.Add(node)
	}
	switch r.Remedy {
	case command.Load:
		w.again(node, s, command.MaxKeys, true)
	case command.Split:
		w.again(node, s, command.SplitTo(s.count), false)
	case command.Rephrase:
		b.nodes.rephrase(node, w.form())
		w.again(node, s, 1, true)
	default:
		b.refusedAll(node, s.first, s.count, r.Err)
		if r.Later {
			w.hint(node, s)
		}
	}
	if r.Fatal {
		return r.Err
	}
	return nil
}

// An errand is commands for one node alone: the repeat of a command that the node has
// refused. Its replies vote in the rounds of a batch, as those of the
// batch's own wires do.
//
// An errand reaches the node after later batches. A release acts on its own attempt's token alone, and
// an extend shortens nothing, so both are harmless. An acquire, which is one of package fencing, is not
// repeated when its attempt is over: its release may have been sent, and would come first.

// again sends the rounds of a refused command once more, by script calls of at most
// merge keys, with the script in front where the node may not know it.
func (w *wire) again(node int, s *span, merge int, load bool) {
	b := w.batch
	operands := b.batches.reader.Read(s.kind, w.Buf[s.from:s.to])
	var errand *wire
	for i := 0; i < len(operands); {
		first := i
		for i < len(operands) && !b.isOver(s.first+i) {
			i++
		}
		if i > first {
			if errand == nil {
				errand = b.newErrand(node, s.kind, load)
			}
			errand.append(s.kind, s.first+first, operands[first:i], merge)
		}
		for ; i < len(operands) && b.isOver(s.first+i); i++ {
			b.rounds[s.first+i].absent.Add(node)
			b.refused(node, s.first+i, errOvertaken)
		}
	}
	if errand != nil {
		errand.sendTo(node)
	}
}

// newErrand is an errand in rounds of b, by script calls.
func (b *batch) newErrand(node int, kind Kind, load bool) *wire {
	w := newWire(b)
	if f := b.nodes.Node(node).Form; command.Form(f).IsFenced(kind) {
		w.Form = f
	}
	w.errand, w.loads = true, load
	if load {
		w.Buf = command.AppendLoad(w.Buf, kind, w.form())
	}
	return w
}

func (w *wire) sendTo(node int) {
	if w.Replies = len(w.spans); w.loads {
		w.Replies++
	}
	w.batch.owed++
	w.batch.open[node]++
	w.batch.nodes.SendTo(node, &w.Batch)
}

// hint keeps a release that has failed on a node, unless the node cannot have its key.
func (w *wire) hint(node int, s *span) {
	b := w.batch
	if s.kind != Release || !b.batches.hints.wanted(node) {
		return
	}
	rounds := b.rounds[s.first : s.first+s.count]
	if !slices.ContainsFunc(rounds, func(r round) bool { return !r.absent.Has(node) }) {
		return // as for most releases that a node misses while it is away
	}
	for i, op := range b.batches.reader.Read(s.kind, w.Buf[s.from:s.to]) {
		if !rounds[i].absent.Has(node) {
			b.batches.hints.of[node].add(op.Key, op.Token)
		}
	}
}

// repair has the nodes repaired that lack a key of s.
func (w *wire) repair(s *span) {
	b := w.batch
	if s.kind != Extend || !b.lacking {
		return
	}
	for i := range s.count {
		b.votes.repair(s.first+i, &b.batches.repairs, func() []command.Operand {
			return b.batches.reader.Read(s.kind, w.Buf[s.from:s.to])[i : i+1]
		})
	}
}
