package engine

import (
	"errors"
	"fmt"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/resp"
)

var (
	errTimeout   = errors.New("no answer in time")
	errMisfit    = errors.New("reply does not fit the command")
	errOvertaken = errors.New("must be asked again, but a later extend of the same lock is on its way")
)

// count turns one reply into votes. An error says that the reply does not fit
// and the stream can no longer be trusted.
func (w *wire) count(node int, s *span, v *resp.Value) error {
	if v.IsError() {
		return w.refused(node, s, v)
	}
	e := w.batch.engine
	answers, fits := command.Read(e.answers[:0], s.kind, w.form(), s.count, v)
	e.answers = answers
	if !fits {
		answers = answers[:min(len(answers), s.count-1)] // the last is what does not fit
	}
	for i := range answers {
		w.batch.answered(node, s.first+i, answers[i].Granted, s.kind)
	}
	if fits {
		return nil
	}
	err := misfit(v)
	w.batch.refusedAll(node, &span{first: s.first + len(answers), count: s.count - len(answers)}, err)
	return err
}

func misfit(v *resp.Value) error { return fmt.Errorf("%w: %v", errMisfit, v.Kind) }

// refused handles an error reply. Most fail the vote and leave the connection
// as it is; an error that is returned ends it. Some are answered by an errand.
//
// What one caller asks must not decide the answer of another. So a merged call
// that is refused, perhaps for one of its keys, is sent again key by key.
func (w *wire) refused(node int, s *span, v *resp.Value) error {
	b := w.batch
	r := command.Refused(s.kind, w.form(), s.count, v.Bytes, w.loads)
	if s.kind == Acquire && r.Unapplied {
		b.rounds[s.first].absent |= 1 << uint(node)
	}
	switch r.Remedy {
	case command.Load:
		w.again(node, s, command.MaxKeys, true)
	case command.Split:
		w.again(node, s, 1, false)
	case command.Rephrase:
		fleet := b.engine.fleet
		now := command.Form(fleet.Form(node))
		fleet.SetForm(node, conn.Form(now.Without(s.kind, w.form())))
		w.again(node, s, 1, true)
	case command.RephraseOnce:
		w.again(node, s, 1, true)
	default:
		b.refusedAll(node, s, r.Err)
	}
	if r.Fatal {
		return r.Err
	}
	return nil
}
