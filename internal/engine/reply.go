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
func (b *batch) count(node int, s *span, v *resp.Value, mayRetry bool) error {
	switch {
	case v.Kind == resp.Error || v.Kind == resp.BulkError:
		return b.refused(node, s, v, mayRetry)
	case s.kind == Acquire && v.IsOK():
		b.vote(node, s.first, quorum.Granted)
		return nil
	case s.kind == Acquire && v.Null:
		b.vote(node, s.first, quorum.Denied)
		return nil
	case s.kind != Acquire && v.Kind == resp.Array && !v.Null && v.Int == int64(s.count):
		return b.countMerged(node, s, v)
	}
	return b.misfit(node, s, v)
}

// countMerged counts the array of a merged command, an integer for each round.
func (b *batch) countMerged(node int, s *span, v *resp.Value) error {
	i := s.first
	it := v.Elements()
	for it.Next() {
		e := it.Value()
		if e.Kind != resp.Integer || e.Int != 0 && e.Int != 1 {
			return b.misfit(node, &span{first: i, count: s.first + s.count - i}, v)
		}
		if e.Int == 1 {
			b.vote(node, i, quorum.Granted)
		} else {
			b.vote(node, i, quorum.Denied)
		}
		i++
	}
	return nil
}

func (b *batch) misfit(node int, s *span, v *resp.Value) error {
	err := fmt.Errorf("%w: %v", errMisfit, v.Kind)
	b.failSpan(node, s, err)
	return err
}

func (b *batch) failSpan(node int, s *span, err error) {
	b.cause[node] = err
	for i := s.first; i < s.first+s.count; i++ {
		b.vote(node, i, quorum.Failed)
	}
}

// refused handles an error reply. Most fail the vote and leave the connection
// as it is.
func (b *batch) refused(node int, s *span, v *resp.Value, mayRetry bool) error {
	if string(resp.Code(v.Bytes)) == "NOSCRIPT" {
		if mayRetry && (s.kind == Release || s.kind == Extend && (b == b.engine.newest || b.awaited(s))) {
			b.retry(node, s)
		} else {
			b.failSpan(node, s, errNoScript)
		}
		return nil
	}
	b.failSpan(node, s, resp.NewServerError(v.Bytes))
	return nil
}

// retry loads the script into a node that has lost it and sends the same call
// again, on the same connection and once. It goes behind what was sent since. A
// release may: it acts on nothing but its own attempt's token. An extend may
// not overtake a later one of the same lock, which shares its token and may ask
// for more: it is sent again only if nothing was sent since, or while all its
// callers wait, for then they have not asked for another.
func (b *batch) retry(node int, s *span) {
	text := script.Release
	if s.kind == Extend {
		text = script.Extend
	}
	r := &retry{batch: b, span: *s}
	r.Buf = appendLoad(nil, text)
	r.Buf = append(r.Buf, b.Buf[s.from:s.to]...)
	r.Replies = 2 // of the load, and of the call
	r.Owner = r
	b.held++
	b.engine.fleet.SendTo(node, &r.Batch)
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

// retry is the second try of one command on one node.
type retry struct {
	conn.Batch
	batch *batch
	span  span
}

// Reply implements conn.Owner. If the load failed, the call behind it does too.
func (r *retry) Reply(node, i int, v *resp.Value) error {
	if i == 0 {
		return nil
	}
	return r.batch.count(node, &r.span, v, false)
}

// Fail implements conn.Owner.
func (r *retry) Fail(node, _ int, err error) { r.batch.failSpan(node, &r.span, err) }

// Settled implements conn.Owner.
func (r *retry) Settled() {
	r.batch.held--
	r.batch.pass()
	r.batch.recycle()
}
