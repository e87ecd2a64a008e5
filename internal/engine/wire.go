package engine

import (
	"errors"
	"slices"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/script"
	"github.com/redlock-go/redlock/resp"
)

// wire is the commands of a batch in one dialect, and which rounds each reply
// answers. Rounds have the same order in all dialects.
type wire struct {
	conn.Batch
	batch *batch
	spans []span
}

// span is the rounds that one reply answers, and the command's place in Buf.
type span struct {
	kind         Kind
	first, count int
	from, to     int
}

// anyScript says whether any node is asked to release by script.
func anyScript(dialects []conn.Dialect) bool {
	return slices.ContainsFunc(dialects, func(d conn.Dialect) bool { return d.Release == conn.ReleaseScript })
}

func newWire(b *batch) *wire {
	w := &wire{batch: b}
	w.Owner = w
	return w
}

// write encodes the groups of the batch, whose operations are all there still.
func (w *wire) write(groups []group, d conn.Dialect) {
	w.Buf, w.spans, w.Dialect = w.Buf[:0], w.spans[:0], d
	for _, g := range groups {
		switch {
		case g.kind == Acquire:
			w.writeEach(g, (*wire).appendAcquire)
		case g.kind == Release && d.Release == conn.ReleaseScript:
			w.writeMerged(g, script.ReleaseSHA1)
		case g.kind == Release:
			w.writeEach(g, (*wire).appendRelease)
		case d.Extend == conn.ExtendScript:
			w.writeMerged(g, script.ExtendSHA1)
		default:
			w.writeEach(g, (*wire).appendSetIfEq)
		}
	}
	w.Replies = len(w.spans)
}

// writeEach writes a command for each round of a group.
func (w *wire) writeEach(g group, one func(*wire, *Op)) {
	for i := g.first; i < g.first+g.count; i++ {
		from := len(w.Buf)
		one(w, w.batch.rounds[i].op)
		w.spans = append(w.spans, span{g.kind, i, 1, from, len(w.Buf)})
	}
}

// appendAcquire writes SET key token NX PX ttl.
func (w *wire) appendAcquire(op *Op) {
	buf := append(w.Buf, "*6\r\n$3\r\nSET\r\n"...)
	buf = resp.AppendBulk(buf, op.Key)
	buf = appendToken(buf, op.Token[:])
	buf = append(buf, "$2\r\nNX\r\n$2\r\nPX\r\n"...)
	w.Buf = resp.AppendBulkInt(buf, milliseconds(op.TTL))
}

// appendRelease writes the release that is native to the dialect.
func (w *wire) appendRelease(op *Op) {
	w.Buf = appendNativeRelease(w.Buf, w.Dialect.Release, op.Key, op.Token[:])
}

// appendNativeRelease writes DELIFEQ key token, or DELEX key IFEQ token.
func appendNativeRelease(dst []byte, form conn.ReleaseForm, key, token []byte) []byte {
	if form == conn.ReleaseDelIfEq {
		dst = append(dst, "*3\r\n$7\r\nDELIFEQ\r\n"...)
		dst = resp.AppendBulk(dst, key)
		return appendToken(dst, token)
	}
	dst = append(dst, "*4\r\n$5\r\nDELEX\r\n"...)
	dst = resp.AppendBulk(dst, key)
	dst = append(dst, "$4\r\nIFEQ\r\n"...)
	return appendToken(dst, token)
}

// appendSetIfEq writes SET key token IFEQ token PX ttl. It never creates a key:
// where there is none, nothing is equal.
func (w *wire) appendSetIfEq(op *Op) {
	buf := append(w.Buf, "*7\r\n$3\r\nSET\r\n"...)
	buf = resp.AppendBulk(buf, op.Key)
	buf = appendToken(buf, op.Token[:])
	buf = append(buf, "$4\r\nIFEQ\r\n"...)
	buf = appendToken(buf, op.Token[:])
	buf = append(buf, "$2\r\nPX\r\n"...)
	w.Buf = resp.AppendBulkInt(buf, milliseconds(op.TTL))
}

func appendToken(dst, token []byte) []byte {
	dst = append(dst, "$22\r\n"...)
	dst = append(dst, token...)
	return append(dst, '\r', '\n')
}

// writeMerged writes as many script calls as a group needs.
func (w *wire) writeMerged(g group, sha string) {
	for first, left := g.first, g.count; left > 0; {
		n := min(left, script.MaxKeys)
		from := len(w.Buf)
		w.appendCall(g.kind, sha, w.batch.rounds[first:first+n])
		w.spans = append(w.spans, span{g.kind, first, n, from, len(w.Buf)})
		first, left = first+n, left-n
	}
}

// appendCall writes EVALSHA sha n key… token… and for extends ttl…
func (w *wire) appendCall(kind Kind, sha string, rounds []round) {
	buf := appendEvalSHA(w.Buf, kind, sha, len(rounds))
	for i := range rounds {
		buf = resp.AppendBulk(buf, rounds[i].op.Key)
	}
	for i := range rounds {
		buf = appendToken(buf, rounds[i].op.Token[:])
	}
	if kind == Extend {
		for i := range rounds {
			buf = resp.AppendBulkInt(buf, milliseconds(rounds[i].op.TTL))
		}
	}
	w.Buf = buf
}

// appendEvalSHA writes the head of a call for n keys.
func appendEvalSHA(dst []byte, kind Kind, sha string, n int) []byte {
	args := 3 + 2*n
	if kind == Extend {
		args += n
	}
	dst = resp.AppendArray(dst, args)
	dst = append(dst, "$7\r\nEVALSHA\r\n$40\r\n"...)
	dst = append(dst, sha...)
	dst = append(dst, '\r', '\n')
	return resp.AppendBulkInt(dst, int64(n))
}

func milliseconds(ttl time.Duration) int64 { return int64(ttl / time.Millisecond) }

// Reply implements conn.Owner.
func (w *wire) Reply(node, i int, v *resp.Value) error {
	err := w.count(node, &w.spans[i], v, true)
	if i == len(w.spans)-1 {
		w.batch.answer()
	}
	return err
}

// Fail implements conn.Owner.
func (w *wire) Fail(node, i int, err error) {
	b := w.batch
	if i == 0 && errors.Is(err, conn.ErrNotSent) {
		b.unsent |= 1 << uint(node)
	}
	for ; i < len(w.spans); i++ {
		s := &w.spans[i]
		b.fail(node, s.first, s.count, err)
		b.engine.owe(node, s.kind, w.Buf[s.from:s.to], b.absent[s.first:s.first+s.count])
	}
	b.failed++
	b.answer()
}

// Settled implements conn.Owner.
func (w *wire) Settled() {
	w.batch.owed--
	w.batch.recycle()
}
