package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/fleet"
	"github.com/redlock-go/redlock/internal/token"
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

// operand is the operand of an operation's commands. A value that has no token is all in Tail.
func (op *Op) operand() command.Operand {
	value := op.Token[:]
	if op.Token == (token.Token{}) {
		value = nil
	}
	return command.Operand{Key: op.Key, Token: value, TTL: int64(op.TTL / time.Millisecond), Tail: op.Tail, Block: op.Block}
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
		w.Buf = command.Append(w.Buf, kind, w.form(), operands[:n], w.batch.engine.fence)
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
	if errors.Is(err, conn.ErrNotSent) {
		b.unsent(node, w.spans[i:])
	}
	for ; i < len(w.spans); i++ {
		s := &w.spans[i]
		if w.errand {
			b.refusedAll(node, s, err)
		} else {
			b.lost(node, s.first, s.count, err)
		}
		b.engine.hint(node, w, s)
	}
	if !b.isHint {
		b.gone.Add(node)
	}
	b.ended(node)
	b.pass()
}

// unsent notes that a node was never sent some acquires, and so has no key of
// theirs.
func (b *batch) unsent(node int, spans []span) {
	for _, s := range spans {
		for i := s.first; s.kind == Acquire && i < s.first+s.count; i++ {
			b.rounds[i].absent.Add(node)
		}
	}
}

func (b *batch) refusedAll(node int, s *span, err error) {
	for i := s.first; i < s.first+s.count; i++ {
		b.refused(node, i, err)
	}
}

// Done implements fleet.Owner.
func (w *wire) Done() {
	w.batch.owed--
	w.batch.recycle()
}

var (
	errTimeout     = errors.New("no answer in time (NodeTimeout)")
	errMisfit      = errors.New("reply does not fit the command")
	errReconnected = errors.New("node has another connection since")
	errForgotten   = errors.New("node has forgotten tokens, and has no vote (Config.Fenced)")
	errStale       = errors.New("node knows a larger fencing token, and has refused no more than the number")
	errForeign     = errors.New("node belongs to a fleet that is configured otherwise (Config.Fenced)")
	errOvertaken   = errors.New("must be asked again, but the attempt is over")
)

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
		answers := &b.engine.answers
		for answers.Begin(s.count, v); answers.Next(); i++ {
			b.answered(node, i, answers.Granted(), s.kind)
		}
		if answers.Fits() {
			return nil
		}
	}
	err := misfit(v)
	w.batch.refusedAll(node, &span{first: i, count: s.first + s.count - i}, err)
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

func misfit(v *resp.Value) error { return fmt.Errorf("%w: %v", errMisfit, v.Kind) }

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
		nodes := b.engine.fleet
		now := command.Form(nodes.Node(node).Form)
		nodes.SetForm(node, fleet.Form(now.Without(w.form())))
		w.again(node, s, 1, true)
	default:
		b.refusedAll(node, s, r.Err)
		if r.Later && s.kind == Release {
			b.later = true
			b.engine.hint(node, w, s)
		}
	}
	if r.Fatal {
		return r.Err
	}
	return nil
}
