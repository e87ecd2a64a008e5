package engine

import (
	"errors"
	"fmt"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/script"
	"github.com/redlock-go/redlock/resp"
)

var (
	errTimeout   = errors.New("no answer in time")
	errMisfit    = errors.New("reply does not fit the command")
	errNoScript  = errors.New("server keeps forgetting the script")
	errOvertaken = errors.New("must be asked again, but a later extend of the same lock is on its way")
)

// count turns one reply into votes. An error says that the reply does not fit
// and the stream can no longer be trusted.
func (w *wire) count(node int, s *span, v *resp.Value) error {
	switch {
	case v.IsError():
		return w.refused(node, s, v)
	case isScript(s.kind, w.Dialect):
		if v.Kind == resp.Array && !v.Null && v.Int == int64(s.count) {
			return w.countMerged(node, s, v)
		}
	case s.kind == Release:
		if v.Kind == resp.Integer && (v.Int == 0 || v.Int == 1) {
			w.batch.answered(node, s.first, v.Int == 1, s.kind)
			return nil
		}
	case v.IsOK(), v.Null: // SET
		w.batch.answered(node, s.first, !v.Null, s.kind)
		return nil
	}
	return w.misfit(node, s, v)
}

// countMerged counts the array of a merged command, an integer for each round.
func (w *wire) countMerged(node int, s *span, v *resp.Value) error {
	i := s.first
	it := v.Elements()
	for it.Next() {
		e := it.Value()
		if e.Kind != resp.Integer || e.Int != 0 && e.Int != 1 {
			return w.misfit(node, &span{first: i, count: s.first + s.count - i}, v)
		}
		w.batch.answered(node, i, e.Int == 1, s.kind)
		i++
	}
	return nil
}

func (w *wire) misfit(node int, s *span, v *resp.Value) error {
	err := misfit(v)
	w.batch.refusedAll(node, s, err)
	return err
}

func misfit(v *resp.Value) error { return fmt.Errorf("%w: %v", errMisfit, v.Kind) }

// refused handles an error reply. Most fail the vote and leave the connection
// as it is; an error that is returned ends it. Some are answered by an errand.
//
// What one caller asks must not decide the answer of another. So a merged call
// that is refused, perhaps for one of its keys, is sent again key by key.
func (w *wire) refused(node int, s *span, v *resp.Value) error {
	code := string(resp.Code(v.Bytes))
	call := isScript(s.kind, w.Dialect)
	if call && code == "NOSCRIPT" {
		if w.loads {
			w.batch.refusedAll(node, s, errNoScript)
		} else {
			w.again(node, s, script.MaxKeys, true)
		}
		return nil
	}
	fatal, err := conn.Refusal(v.Bytes)
	if s.kind == Acquire && isUnapplied(code) {
		w.batch.rounds[s.first].absent |= 1 << uint(node)
	}
	forbidden := errors.Is(err, conn.ErrForbidden)
	switch {
	case fatal:
		w.batch.refusedAll(node, s, err)
		return err
	case call && s.count > 1 && !isOfServer(code) && (!forbidden || conn.ForbidsKey(v.Bytes)):
		w.again(node, s, 1, false)
	case !call && s.kind != Acquire && (code == "NOPERM" || code == "ERR") && !conn.ForbidsKey(v.Bytes):
		// A native command that is not there after all, or no longer allowed. One
		// whose key is out of bounds is: by script it would fare no better.
		if s.kind == Release {
			w.batch.engine.fleet.Unlearn(node, conn.Dialect{Release: w.Dialect.Release})
		} else {
			w.batch.engine.fleet.Unlearn(node, conn.Dialect{Extend: w.Dialect.Extend})
		}
		w.again(node, s, 1, true)
	case !call && s.kind == Extend && code == "OOM":
		// SET is refused when memory is short; PEXPIRE, in the script, is not.
		w.again(node, s, 1, true)
	default:
		w.batch.refusedAll(node, s, err)
	}
	return nil
}

// isUnapplied says of an error's code that servers check for it before they
// execute a command.
func isUnapplied(code string) bool {
	switch code {
	case "NOPERM", "NOAUTH", "READONLY", "MASTERDOWN":
		return true
	}
	return isOfServer(code)
}

// isOfServer says of an error's code that it is about the state of the server, not
// about a key.
func isOfServer(code string) bool {
	switch code {
	case "OOM", "MISCONF", "BUSY", "LOADING", "NOREPLICAS":
		return true
	}
	return false
}
