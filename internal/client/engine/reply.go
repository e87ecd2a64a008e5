package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// Reply implements fleet.Owner.
func (w *wire) Reply(node, i int, v *resp.Value) (err error) {
	s := &w.spans[i]
	err = w.count(node, s, v)
	if w.batch.repairs && !v.IsError() {
		w.repair(s)
	}
	w.replied(node, i)
	return err
}

// Doubted implements the Doubter of fleet.Batch. That a key with the token is gone is a fact: a release counts. An acquire
// fails, and another one may follow: it may have been applied, and so refuse a second one. What is left can be asked twice.
func (w *wire) Doubted(node, i int, v *resp.Value) error {
	switch s := &w.spans[i]; {
	case s.kind == Release:
		return w.Reply(node, i, v)
	case s.kind == Acquire || w.errand:
		w.batch.failedAll(node, s.first, s.count, conn.ErrEmptied)
	default:
		w.again(node, s, s.form, command.MaxKeys, w.byText)
	}
	w.replied(node, i)
	return nil
}

// replied notes that a node has answered the rounds of the spans up to i.
func (w *wire) replied(node, i int) {
	b := w.batch
	b.replied = true
	if i == len(w.spans)-1 {
		b.ended(node)
	}
	b.tryLeave(false)
}

// AsUsual implements the Counter of fleet.Batch: a node has done everything asked by n commands from i on.
func (w *wire) AsUsual(node, i, n int) {
	b := w.batch
	first, last := &w.spans[i], &w.spans[i+n-1]
	b.granted(node, first.first, last.first+last.count)
	if b.hints[node].refuses != 0 && slices.ContainsFunc(w.spans[i:i+n], func(s span) bool { return s.kind == Release }) {
		b.released(node)
	}
	w.replied(node, i+n-1)
}

// Fail implements fleet.Owner.
func (w *wire) Fail(node, i int, err error) {
	b := w.batch
	unsent := errors.Is(err, conn.ErrNotSent)
	for ; i < len(w.spans); i++ {
		s := &w.spans[i]
		if unsent && s.kind == Acquire {
			for i := range s.count {
				b.rounds[s.first+i].absent.Add(node) // it was never sent them
			}
		}
		if w.errand {
			b.failedAll(node, s.first, s.count, err)
		} else {
			b.lost(node, s.first, s.count, err)
		}
		w.hint(node, s, s.first, nil)
	}
	b.gone.Add(node)
	b.ended(node)
	b.tryLeave(false)
}

// Done implements fleet.Owner.
func (w *wire) Done() {
	w.batch.owed--
	if w.batch.owed == 0 {
		w.batch.recycle(w.batch)
	}
}

// count turns one reply into votes. An error means: the reply does not fit, and the stream can no longer be trusted.
func (w *wire) count(node int, s *span, v *resp.Value) error {
	if v.IsError() {
		return w.refused(node, s, v)
	}
	i, b := s.first, w.batch
	a := &b.parsed
	for a.Begin(s.kind, s.form, s.count, v); a.Next(); i++ {
		if s.kind == Release && a.Granted {
			b.released(node)
		}
		if a.Fenced.Code != 0 {
			b.fenced(node, i, s.kind, a.Fenced)
			continue
		}
		if a.Gated {
			b.rounds[i].gated.Add(node)
		}
		b.answered(node, i, a.Granted, s.kind)
	}
	if a.Fits {
		return nil
	}
	err := misfit(v)
	b.failedAll(node, i, s.first+s.count-i, err)
	w.hint(node, s, i, &command.Refusal{})
	return err
}

// refused handles an error reply. Most fail the vote and leave the connection as it is; a returned error ends it.
// Some are answered by an errand.
//
// One caller's key must not decide the result of another. So a merged call, refused perhaps for one of its keys, is
// sent again in smaller calls.
func (w *wire) refused(node int, s *span, v *resp.Value) error {
	b := w.batch
	r := command.Refused(s.kind, s.form, s.count, v, w.byText)
	if r.NotHeld {
		b.answered(node, s.first, false, s.kind)
		return nil
	}
	if s.kind == Acquire && r.Unapplied {
		b.rounds[s.first].absent.Add(node)
	}
	scripts := s.form.Without(s.form)
	switch r.Remedy {
	case command.Spell:
		w.again(node, s, scripts, command.MaxKeys, true)
	case command.Split:
		w.again(node, s, scripts, command.SplitTo(s.count), false)
	case command.Rephrase:
		b.nodes.rephrase(node, w.form())
		w.again(node, s, scripts, 1, true)
	default:
		b.failedAll(node, s.first, s.count, r.Err)
		w.hint(node, s, s.first, &r)
	}
	if r.Fatal {
		return r.Err
	}
	return nil
}

// hint keeps the releases of s from round first on, which a node has refused, or missed if refused is nil. A node that
// cannot have the key is owed none.
func (w *wire) hint(node int, s *span, first int, refused *command.Refusal) {
	b := w.batch
	if s.kind != Release || !b.wantsHint(node) {
		return
	}
	rounds := b.rounds[s.first : s.first+s.count]
	if !slices.ContainsFunc(rounds, func(r round) bool { return !r.absent.Has(node) }) {
		return // as for most releases missed by a node while it is away
	}
	now := b.nodes.clock.Now()
	if refused != nil {
		b.hints[node].refused(now)
	}
	for i, op := range b.decoder.Read(s.kind, w.Buf[s.from:s.to]) {
		if r := &rounds[i]; s.first+i >= first && !r.absent.Has(node) {
			x := owed{hint: hint{string(op.Key), string(op.Token), Release, op.Shared}, refused: r.refused}
			if refused != nil {
				if r.refused == 0 || !b.probes && !refused.Later {
					x.refused = max(r.refused+1, r.refused)
				}
				x.due = now.Add(pauseAfter(x.refused))
			}
			if op.TTL > 0 {
				x.stays = now.Add(time.Duration(op.TTL) * time.Millisecond)
			}
			b.hints[node].add(x)
		}
	}
}

// repair notes the repairs of rounds of s: of an extend that has won, at the nodes without the key. A node may have
// answered before the win, or long after. A repair that was denied is noted once more.
func (w *wire) repair(s *span) {
	b := w.batch
	for i := range s.count {
		r := &b.rounds[s.first+i]
		if r.absent == 0 || r.repairer == nil || r.refused+1 == maxDenied || b.to == 0 && r.tally.Verdict() != quorum.Won {
			continue
		}
		op := b.decoder.Read(s.kind, w.Buf[s.from:s.to])[i]
		x := owed{hint: hint{string(op.Key), string(op.Token), Acquire, op.Shared}, refused: r.refused, lock: r.repairer, life: r.repairLife}
		if b.to != 0 {
			x.refused++
		}
		for node := range r.absent.All() {
			if b.wantsHint(node) {
				b.hints[node].add(x)
				b.ready.Add(node)
			}
		}
		r.absent = 0 // once for each answer
	}
}
