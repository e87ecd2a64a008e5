package engine

import (
	"errors"
	"fmt"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/script"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

var (
	errTimeout  = errors.New("no answer in time")
	errMisfit   = errors.New("reply does not fit the command")
	errNoScript = errors.New("server keeps forgetting the script")
)

// count turns one reply into votes. An error says that the reply does not fit
// and the stream can no longer be trusted.
func (w *wire) count(node int, s *span, v *resp.Value, mayRetry bool) error {
	granted, denied := quorum.Granted, quorum.Denied
	if s.kind != Release && w.batch.guarded>>uint(node)&1 == 1 {
		// It has restarted, and what it says of its keys is not the whole truth.
		w.batch.cause[node] = conn.ErrGuarded
		granted, denied = quorum.Failed, quorum.Failed
	}
	switch {
	case v.Kind == resp.Error || v.Kind == resp.BulkError:
		return w.refused(node, s, v, mayRetry)
	case s.answersOK(w.Dialect) && v.IsOK():
		w.batch.vote(node, s.first, granted)
		return nil
	case s.answersOK(w.Dialect) && v.Null:
		w.batch.vote(node, s.first, denied)
		return nil
	case s.kind == Release && w.Dialect.Release != conn.ReleaseScript && v.Kind == resp.Integer:
		switch v.Int {
		case 1:
			w.batch.vote(node, s.first, granted)
			return nil
		case 0:
			w.batch.vote(node, s.first, denied)
			return nil
		}
	case s.isMerged(w.Dialect) && v.Kind == resp.Array && !v.Null && v.Int == int64(s.count):
		return w.countMerged(node, s, v, granted, denied)
	}
	return w.misfit(node, s, v)
}

// answersOK says whether a command is a SET, which answers OK or null.
func (s *span) answersOK(d conn.Dialect) bool {
	return s.kind == Acquire || s.kind == Extend && d.Extend == conn.ExtendSetIfEq
}

// isMerged says whether a command is a script call, which answers an array.
func (s *span) isMerged(d conn.Dialect) bool {
	return s.kind == Release && d.Release == conn.ReleaseScript || s.kind == Extend && d.Extend == conn.ExtendScript
}

// countMerged counts the array of a merged command, an integer for each round.
func (w *wire) countMerged(node int, s *span, v *resp.Value, granted, denied quorum.Outcome) error {
	i := s.first
	it := v.Elements()
	for it.Next() {
		e := it.Value()
		if e.Kind != resp.Integer || e.Int != 0 && e.Int != 1 {
			return w.misfit(node, &span{first: i, count: s.first + s.count - i}, v)
		}
		if e.Int == 1 {
			w.batch.vote(node, i, granted)
		} else {
			w.batch.vote(node, i, denied)
		}
		i++
	}
	return nil
}

func (w *wire) misfit(node int, s *span, v *resp.Value) error {
	err := misfit(v)
	w.batch.fail(node, s.first, s.count, err)
	return err
}

func misfit(v *resp.Value) error { return fmt.Errorf("%w: %v", errMisfit, v.Kind) }

// refused handles an error reply. Most fail the vote and leave the connection
// as it is; an error that is returned ends it.
func (w *wire) refused(node int, s *span, v *resp.Value, mayRetry bool) error {
	code := string(resp.Code(v.Bytes))
	if s.isMerged(w.Dialect) && code == "NOSCRIPT" {
		if mayRetry && w.mayRepeat(s) {
			w.retry(node, s)
		} else {
			w.batch.fail(node, s.first, s.count, errNoScript)
		}
		return nil
	}
	again := false
	fatal, err := conn.Refusal(v.Bytes)
	switch { // a retry is a script call, and not sent again from here
	case fatal:
		w.batch.fail(node, s.first, s.count, err)
		return err
	case !s.isMerged(w.Dialect) && s.kind != Acquire && (code == "NOPERM" || code == "ERR") && !conn.ForbidsKey(v.Bytes):
		// A native command that is not there after all, or no longer allowed. One
		// whose key is out of bounds is: by script it would fare no better.
		if s.kind == Release {
			w.batch.engine.fleet.Unlearn(node, conn.Dialect{Release: w.Dialect.Release})
		} else {
			w.batch.engine.fleet.Unlearn(node, conn.Dialect{Extend: w.Dialect.Extend})
		}
		again = w.mayRepeat(s)
	case s.kind == Extend && w.Dialect.Extend == conn.ExtendSetIfEq && code == "OOM":
		// SET is refused when memory is short; PEXPIRE, in the script, is not.
		again = w.mayRepeat(s)
	}
	if again {
		w.retry(node, s)
		return nil
	}
	w.batch.fail(node, s.first, s.count, err)
	return nil
}

// mayRepeat says whether a command may be sent again, behind what was sent since.
// A release may: it acts on nothing but its own attempt's token. An extend may
// not overtake a later one of the same lock, which shares its token and may ask
// for more: it is sent again only if nothing was sent since, or while all its
// callers wait, for then they have not asked for another.
func (w *wire) mayRepeat(s *span) bool {
	return s.kind == Release || s.kind == Extend && (w.batch == w.batch.engine.newest || w.batch.awaited(s))
}

// retry loads the script into a node that has lost it, or turns out to need it,
// and sends the same call again, on the same connection and once.
func (w *wire) retry(node int, s *span) {
	text, sha := script.Release, script.ReleaseSHA1
	if s.kind == Extend {
		text, sha = script.Extend, script.ExtendSHA1
	}
	r := &retry{wire: wire{batch: w.batch}}
	r.Buf = appendLoad(nil, text)
	from := len(r.Buf)
	if command := w.Buf[s.from:s.to]; s.isMerged(w.Dialect) {
		r.Buf = append(r.Buf, command...)
	} else {
		r.Buf = appendAsCall(r.Buf, s.kind, sha, command)
	}
	r.span = span{s.kind, s.first, s.count, from, len(r.Buf)}
	r.Replies = 2 // of the load, and of the call
	r.Owner = r
	w.batch.held++
	w.batch.engine.fleet.SendTo(node, &r.Batch)
}

// awaited says whether every operation of a command is still under way.
func (b *batch) awaited(s *span) bool {
	for i := s.first; i < s.first+s.count; i++ {
		if r := &b.rounds[i]; r.op == nil || r.op.state.Load() != r.life {
			return false
		}
	}
	return true
}

func appendLoad(dst []byte, text string) []byte {
	dst = append(dst, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n"...)
	return resp.AppendBulkString(dst, text)
}

// retry is the second try of one command on one node, always as a script call.
type retry struct {
	wire
	span span
}

// Reply implements conn.Owner. If the load failed, the call behind it does too.
func (r *retry) Reply(node, i int, v *resp.Value) error {
	switch {
	case i > 0:
		return r.count(node, &r.span, v, false)
	case !v.IsError() && v.Kind != resp.Bulk:
		return misfit(v)
	}
	return nil
}

// Fail implements conn.Owner.
func (r *retry) Fail(node, _ int, err error) {
	r.batch.fail(node, r.span.first, r.span.count, err)
	absent := r.batch.absent[r.span.first : r.span.first+r.span.count]
	r.batch.engine.owe(node, r.span.kind, r.Buf[r.span.from:r.span.to], absent)
}

// Settled implements conn.Owner.
func (r *retry) Settled() {
	b := r.batch
	b.held--
	b.pass()
	b.recycle()
}
