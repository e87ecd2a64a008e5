package engine

import "github.com/redlock-go/redlock/internal/command"

// An errand is commands for one node alone: the repeat of a command that the node has
// refused, or hints. Its replies vote in the rounds of a batch, as those of the
// batch's own wires do.
//
// An errand reaches the node after later batches. A release acts on its own attempt's token alone, and
// an extend shortens nothing, so both are harmless. An acquire, which is one of package fencing, is not
// repeated when its attempt is over: its release may have been sent, and would come first.

// again sends the rounds of a refused command once more, by script calls of at most
// merge keys, with the script in front where the node may not know it.
func (w *wire) again(node int, s *span, merge int, load bool) {
	b := w.batch
	operands := b.engine.reader.Read(s.kind, w.Buf[s.from:s.to])
	var errand *wire
	for i := 0; i < len(operands); {
		first := i
		for i < len(operands) && !b.isOver(s, s.first+i) {
			i++
		}
		if i > first {
			if errand == nil {
				errand = b.newErrand(node, s.kind, load)
			}
			errand.append(s.kind, s.first+first, operands[first:i], merge)
		}
		for ; i < len(operands) && b.isOver(s, s.first+i); i++ {
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
	if f := b.engine.fleet.Node(node).Form; command.Form(f).IsFenced(kind) {
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
	if !w.batch.isHint {
		w.batch.open[node]++
	}
	w.batch.engine.fleet.SendTo(node, &w.Batch)
}

// isOver reports whether round i of s is an attempt to acquire that is over.
func (b *batch) isOver(s *span, i int) bool {
	r := &b.rounds[i]
	return s.kind == Acquire && (r.op == nil || r.op.state.Load() != r.life)
}
