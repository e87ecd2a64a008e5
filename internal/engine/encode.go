package engine

import (
	"hash/maphash"
	"time"

	"github.com/redlock-go/redlock/internal/script"
	"github.com/redlock-go/redlock/resp"
)

// The order in which a segment's commands are written: releases first, since
// they free keys that acquires behind them may want.
const (
	releases = iota
	extends
	acquires
	classes
)

var classOf = [...]uint8{Release: releases, Extend: extends, Acquire: acquires}

// encoder turns a list of operations into the bytes of a batch. Releases, and
// extends, that wait together become one script call each; acquires stay
// commands of their own.
//
// Merging moves commands past each other, which must not show. So a list is cut
// into segments: within one, each key occurs once, or only such that writing
// releases, then extends, then acquires keeps the order of its commands. The
// keys are told apart by hash; two keys that share one cost a cut, no more.
type encoder struct {
	seed  maphash.Seed
	seen  keySet
	lists [classes]list
}

// list is a chain of operations through next.
type list struct {
	first, last *Op
	n           int
}

func (l *list) push(op *Op) {
	op.next = nil
	if l.first == nil {
		l.first = op
	} else {
		l.last.next = op
	}
	l.last = op
	l.n++
}

// encode writes the n operations from first on into b.
func (enc *encoder) encode(b *batch, first *Op, n int) {
	enc.seen.reset(n)
	for op := first; op != nil; {
		next := op.next
		class := classOf[op.Kind]
		if n > 1 {
			hash := maphash.Bytes(enc.seed, op.Key)
			if was, again := enc.seen.add(hash, class); again && (was > class || was == class && class != acquires) {
				enc.cut(b)
				enc.seen.reset(n)
				enc.seen.add(hash, class)
			}
		}
		enc.lists[class].push(op)
		op = next
	}
	enc.cut(b)
}

// cut ends a segment: what is listed is written.
func (enc *encoder) cut(b *batch) {
	b.appendScripts(Release, script.ReleaseSHA1, enc.lists[releases])
	b.appendScripts(Extend, script.ExtendSHA1, enc.lists[extends])
	for op := enc.lists[acquires].first; op != nil; {
		next := op.next
		b.appendAcquire(op)
		op = next
	}
	enc.lists = [classes]list{}
}

// appendAcquire writes SET key token NX PX ttl.
func (b *batch) appendAcquire(op *Op) {
	b.open(Acquire, 1)
	buf := append(b.Buf, "*6\r\n$3\r\nSET\r\n"...)
	buf = resp.AppendBulk(buf, op.Key)
	buf = append(buf, "$22\r\n"...)
	buf = append(buf, op.Token[:]...)
	buf = append(buf, "\r\n$2\r\nNX\r\n$2\r\nPX\r\n"...)
	b.Buf = resp.AppendBulkInt(buf, milliseconds(op.TTL))
	b.add(op)
	b.close()
}

// appendScripts writes as many script calls as a list needs.
func (b *batch) appendScripts(kind Kind, sha string, l list) {
	for op := l.first; op != nil; l.n -= script.MaxKeys {
		op = b.appendMerged(kind, sha, op, min(l.n, script.MaxKeys))
	}
}

// appendMerged writes one script call for the n operations from first on and
// returns the operation behind them.
func (b *batch) appendMerged(kind Kind, sha string, first *Op, n int) *Op {
	b.open(kind, n)
	args := 3 + 2*n
	if kind == Extend {
		args += n
	}
	buf := resp.AppendArray(b.Buf, args)
	buf = append(buf, "$7\r\nEVALSHA\r\n$40\r\n"...)
	buf = append(buf, sha...)
	buf = append(buf, '\r', '\n')
	buf = resp.AppendBulkInt(buf, int64(n))
	op := first
	for range n {
		buf = resp.AppendBulk(buf, op.Key)
		op = op.next
	}
	op = first
	for range n {
		buf = resp.AppendBulk(buf, op.Token[:])
		op = op.next
	}
	if kind == Extend {
		op = first
		for range n {
			buf = resp.AppendBulkInt(buf, milliseconds(op.TTL))
			op = op.next
		}
	}
	b.Buf = buf
	op = first
	for range n {
		next := op.next
		b.add(op)
		op = next
	}
	b.close()
	return op
}

func milliseconds(ttl time.Duration) int64 { return int64(ttl / time.Millisecond) }

// keySet remembers which hashes a segment has seen, and the highest class of
// each. Resetting it costs nothing: an entry counts only in its own epoch.
type keySet struct {
	entries []keyEntry // power of two, at most half full
	epoch   uint32
}

type keyEntry struct {
	hash  uint64
	epoch uint32
	class uint8
}

// reset forgets everything and makes room for n keys.
func (s *keySet) reset(n int) {
	size := 64
	for size < 2*n {
		size *= 2
	}
	s.epoch++
	if len(s.entries) < size || s.epoch == 0 {
		s.entries = make([]keyEntry, max(size, len(s.entries)))
		s.epoch = 1
	}
}

// add notes the class for a hash and returns what was noted before.
func (s *keySet) add(hash uint64, class uint8) (was uint8, again bool) {
	mask := uint64(len(s.entries) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		e := &s.entries[i]
		if e.epoch != s.epoch {
			*e = keyEntry{hash, s.epoch, class}
			return 0, false
		}
		if e.hash == hash {
			was = e.class
			e.class = max(was, class)
			return was, true
		}
	}
}
