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
// answers. Rounds have the same order in all dialects. An errand is a wire for
// one node alone.
type wire struct {
	conn.Batch
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

// operand is what a command says of one key.
type operand struct {
	key, token []byte
	ttl        int64 // of acquires and extends, in milliseconds
}

func (op *Op) operand() operand {
	return operand{op.Key, op.Token[:], int64(op.TTL / time.Millisecond)}
}

// callBytes bounds the keys of a script call, in bytes, and script.MaxKeys their
// number. A server answers nothing before it has the whole call, and one that
// does not answer is taken for dead.
const callBytes = 64 << 10

// anyScript says whether any node is asked to release by script.
func anyScript(dialects []conn.Dialect) bool {
	return slices.ContainsFunc(dialects, func(d conn.Dialect) bool { return d.Release == conn.ReleaseScript })
}

func newWire(b *batch) *wire {
	w := &wire{batch: b}
	w.Owner = w
	return w
}

// write encodes the groups of the batch.
func (w *wire) write(groups []group, operands []operand, d conn.Dialect) {
	w.Buf, w.spans, w.Dialect = w.Buf[:0], w.spans[:0], d
	for _, g := range groups {
		w.append(g.kind, g.first, operands[g.first:g.first+g.count], script.MaxKeys)
	}
	w.Replies = len(w.spans)
}

// append writes commands for the rounds from first on, of which a script call takes
// at most merge.
func (w *wire) append(kind Kind, first int, operands []operand, merge int) {
	for len(operands) > 0 {
		n := 1
		if isScript(kind, w.Dialect) {
			for bytes := len(operands[0].key); n < min(len(operands), merge) && bytes < callBytes; n++ {
				bytes += len(operands[n].key)
			}
		}
		from := len(w.Buf)
		w.Buf = appendCommand(w.Buf, kind, w.Dialect, operands[:n])
		w.spans = append(w.spans, span{kind, first, n, from, len(w.Buf)})
		first, operands = first+n, operands[n:]
	}
}

// isScript says whether a kind is asked for by a script call, which takes several
// operands.
func isScript(kind Kind, d conn.Dialect) bool {
	return kind == Release && d.Release == conn.ReleaseScript || kind == Extend && d.Extend == conn.ExtendScript
}

// appendCommand writes one command.
func appendCommand(dst []byte, kind Kind, d conn.Dialect, operands []operand) []byte {
	op := &operands[0]
	switch {
	case isScript(kind, d):
		return appendCall(dst, kind, operands)
	case kind == Acquire: // SET key token NX PX ttl
		dst = append(dst, "*6\r\n$3\r\nSET\r\n"...)
		dst = resp.AppendBulk(dst, op.key)
		dst = appendToken(dst, op.token)
		dst = append(dst, "$2\r\nNX\r\n$2\r\nPX\r\n"...)
		return resp.AppendBulkInt(dst, op.ttl)
	case kind == Extend: // SET key token IFEQ token PX ttl, which never creates a key
		dst = append(dst, "*7\r\n$3\r\nSET\r\n"...)
		dst = resp.AppendBulk(dst, op.key)
		dst = appendToken(dst, op.token)
		dst = append(dst, "$4\r\nIFEQ\r\n"...)
		dst = appendToken(dst, op.token)
		dst = append(dst, "$2\r\nPX\r\n"...)
		return resp.AppendBulkInt(dst, op.ttl)
	case d.Release == conn.ReleaseDelIfEq: // DELIFEQ key token
		dst = append(dst, "*3\r\n$7\r\nDELIFEQ\r\n"...)
		dst = resp.AppendBulk(dst, op.key)
		return appendToken(dst, op.token)
	default: // DELEX key IFEQ token
		dst = append(dst, "*4\r\n$5\r\nDELEX\r\n"...)
		dst = resp.AppendBulk(dst, op.key)
		dst = append(dst, "$4\r\nIFEQ\r\n"...)
		return appendToken(dst, op.token)
	}
}

// appendCall writes EVALSHA sha n key… token… and for extends ttl…
func appendCall(dst []byte, kind Kind, operands []operand) []byte {
	args, sha := 3+2*len(operands), script.ReleaseSHA1
	if kind == Extend {
		args, sha = args+len(operands), script.ExtendSHA1
	}
	dst = resp.AppendArray(dst, args)
	dst = append(dst, "$7\r\nEVALSHA\r\n$40\r\n"...)
	dst = append(dst, sha...)
	dst = append(dst, '\r', '\n')
	dst = resp.AppendBulkInt(dst, int64(len(operands)))
	for i := range operands {
		dst = resp.AppendBulk(dst, operands[i].key)
	}
	for i := range operands {
		dst = appendToken(dst, operands[i].token)
	}
	if kind == Extend {
		for i := range operands {
			dst = resp.AppendBulkInt(dst, operands[i].ttl)
		}
	}
	return dst
}

func appendToken(dst, token []byte) []byte {
	dst = append(dst, "$22\r\n"...)
	dst = append(dst, token...)
	return append(dst, '\r', '\n')
}

// Reply implements conn.Owner.
func (w *wire) Reply(node, i int, v *resp.Value) (err error) {
	b := w.batch
	b.replied = true
	if w.loads {
		if i--; i < 0 {
			if !v.IsError() && v.Kind != resp.Bulk {
				return misfit(v)
			}
			return nil // if the load failed, the calls behind it do too
		}
	}
	err = w.count(node, &w.spans[i], v)
	if i == len(w.spans)-1 && !w.errand {
		b.heard++
	}
	b.pass()
	return err
}

// Fail implements conn.Owner.
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
	if !w.errand {
		b.failed++
	}
	b.pass()
}

// unsent notes that a node was never sent some acquires, and so has no key of
// theirs.
func (b *batch) unsent(node int, spans []span) {
	for _, s := range spans {
		if s.kind == Acquire {
			b.rounds[s.first].absent |= 1 << uint(node)
		}
	}
}

func (b *batch) refusedAll(node int, s *span, err error) {
	for i := s.first; i < s.first+s.count; i++ {
		b.refused(node, i, err)
	}
}

// Settled implements conn.Owner.
func (w *wire) Settled() {
	w.batch.owed--
	w.batch.recycle()
}
