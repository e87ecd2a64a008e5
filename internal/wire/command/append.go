package command

import (
	"strconv"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// Operand is one key of a command, with its token and TTL. The value at the key is Token, then
// Tail.
type Operand struct {
	Key, Token []byte
	TTL        int64 // in milliseconds, of kinds with a TTL
	Tail       string
	Block      fencing.Block // of a fenced acquire
}

// Fence is the arguments of the scripts of package fencing beside the operands.
type Fence struct {
	Set string                  // the key with the tokens of the fleet
	Me  [quorum.MaxNodes][]byte // by node: the fleet, and the node's present life
	// Known is, by node, the marker last shown, if it serves the client and does not follow from
	// Me; else nil.
	Known [quorum.MaxNodes][]byte
}

// ReadBytes is the length of value read by ReadValue. Locks of others may share the namespace with
// values of any size.
const ReadBytes = 512

// callBytes bounds the keys of a script call in bytes, as MaxKeys bounds their number. A server
// answers after reading the whole call, and one without an answer within StallTimeout counts as
// dead.
const callBytes = 64 << 10

// Merge returns how many of the first operands the next command takes: one, or for a script call at
// most limit.
func Merge(k Kind, f Form, operands []Operand, limit int) int {
	n := 1
	if f.IsScript(k) {
		for bytes := len(operands[0].Key); n < min(len(operands), limit, MaxKeys) && bytes < callBytes; n++ {
			bytes += len(operands[n].Key)
		}
	}
	return n
}

// Append writes one command for all operands; see [Merge]. A fenced Form needs fence.
func Append(dst []byte, k Kind, f Form, operands []Operand, fence *Fence) []byte {
	op := &operands[0]
	switch {
	case f.IsFenced(k):
		return appendFenced(dst, k, operands, fence, f.node())
	case f.IsScript(k):
		return appendCall(dst, k, operands)
	case k == Acquire: // SET key token NX PX ttl
		dst = append(dst, "*6\r\n$3\r\nSET\r\n"...)
		dst = resp.AppendBulk(dst, op.Key)
		dst = appendToken(dst, op)
		dst = append(dst, "$2\r\nNX\r\n$2\r\nPX\r\n"...)
		return appendInt(dst, op.TTL)
	case k == ReadValue: // GETRANGE key 0 last
		dst = append(dst, "*4\r\n$8\r\nGETRANGE\r\n"...)
		dst = resp.AppendBulk(dst, op.Key)
		dst = append(dst, "$1\r\n0\r\n"...)
		return appendInt(dst, ReadBytes-1)
	case k == ReadTTL: // PTTL key
		dst = append(dst, "*2\r\n$4\r\nPTTL\r\n"...)
		return resp.AppendBulk(dst, op.Key)
	case k == Look: // EXISTS key
		dst = append(dst, "*2\r\n$6\r\nEXISTS\r\n"...)
		return resp.AppendBulk(dst, op.Key)
	case f&DelIfEq != 0: // DELIFEQ key token
		dst = append(dst, "*3\r\n$7\r\nDELIFEQ\r\n"...)
		dst = resp.AppendBulk(dst, op.Key)
		return appendToken(dst, op)
	default: // DELEX key IFEQ token
		dst = append(dst, "*4\r\n$5\r\nDELEX\r\n"...)
		dst = resp.AppendBulk(dst, op.Key)
		dst = append(dst, "$4\r\nIFEQ\r\n"...)
		return appendToken(dst, op)
	}
}

// AppendUsual writes the one-line reply of a node that has done all that was asked, by a command of
// n operands. has is false for kinds without such a reply.
func AppendUsual(dst []byte, k Kind, f Form, n int) (_ []byte, has bool) {
	switch {
	case k == Acquire && !f.IsFenced(k):
		return append(dst, "+OK\r\n"...), true
	case k == Release: // a native one is of one key
		return append(strconv.AppendInt(append(dst, ':'), int64(n), 10), '\r', '\n'), true
	}
	return dst, false
}

// appendCall writes EVALSHA sha n key… token… and for extends ttl…
func appendCall(dst []byte, k Kind, operands []Operand) []byte {
	args, sha := 3+2*len(operands), ReleaseSHA1
	if k == Extend {
		args, sha = args+len(operands), ExtendSHA1
	}
	dst = resp.AppendArray(dst, args)
	dst = append(dst, "$7\r\nEVALSHA\r\n$40\r\n"...)
	dst = append(dst, sha...)
	dst = append(dst, '\r', '\n')
	dst = appendInt(dst, int64(len(operands)))
	for i := range operands {
		dst = resp.AppendBulk(dst, operands[i].Key)
	}
	for i := range operands {
		dst = appendToken(dst, &operands[i])
	}
	if k == Extend {
		for i := range operands {
			dst = appendInt(dst, operands[i].TTL)
		}
	}
	return dst
}

// appendFenced writes EVALSHA sha n set key… me, and for each key of an acquire first last token
// ttl, or for extends token… ttl…; at the end the marker, if it is known.
func appendFenced(dst []byte, k Kind, operands []Operand, fence *Fence, node int) []byte {
	n := len(operands)
	args, sha := 5+n+2*n, fencing.ExtendSHA1
	if k == Acquire {
		args, sha = 5+n+4*n, fencing.AcquireSHA1
	}
	known := fence.Known[node]
	if known != nil {
		args++
	}
	dst = resp.AppendArray(dst, args)
	dst = append(dst, "$7\r\nEVALSHA\r\n$40\r\n"...)
	dst = append(dst, sha...)
	dst = append(dst, '\r', '\n')
	dst = appendInt(dst, int64(n+1))
	dst = resp.AppendBulkString(dst, fence.Set)
	for i := range operands {
		dst = resp.AppendBulk(dst, operands[i].Key)
	}
	dst = resp.AppendBulk(dst, fence.Me[node])
	if k == Acquire {
		for i := range operands {
			op := &operands[i]
			dst = appendInt(dst, int64(op.Block.First))
			dst = appendInt(dst, int64(op.Block.Last))
			dst = appendToken(dst, op)
			dst = appendInt(dst, op.TTL)
		}
	} else {
		for i := range operands {
			dst = appendToken(dst, &operands[i])
		}
		for i := range operands {
			dst = appendInt(dst, operands[i].TTL)
		}
	}
	if known != nil {
		dst = resp.AppendBulk(dst, known)
	}
	return dst
}

// appendToken writes the value at the key; most values have the length of a token.
func appendToken(dst []byte, op *Operand) []byte {
	if n := len(op.Token) + len(op.Tail); n == 22 {
		dst = append(dst, "$22\r\n"...)
	} else {
		dst = strconv.AppendInt(append(dst, '$'), int64(n), 10)
		dst = append(dst, '\r', '\n')
	}
	dst = append(dst, op.Token...)
	dst = append(dst, op.Tail...)
	return append(dst, '\r', '\n')
}

// AppendLoad writes the SCRIPT LOAD for script calls of a kind.
func AppendLoad(dst []byte, k Kind, f Form) []byte {
	text := ReleaseScript
	switch {
	case f.IsFenced(k) && k == Acquire:
		text = fencing.AcquireScript
	case f.IsFenced(k):
		text = fencing.ExtendScript
	case k == Extend:
		text = ExtendScript
	}
	dst = append(dst, "*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n"...)
	return resp.AppendBulkString(dst, text)
}

// IsLoaded reports whether a reply to SCRIPT LOAD fits. After an error, the calls behind it are
// refused too.
func IsLoaded(v *resp.Value) bool { return v.IsError() || v.Kind == resp.Bulk }

// appendInt appends a number as a bulk, its form in commands.
func appendInt(dst []byte, n int64) []byte {
	var digits [20]byte // -9223372036854775808 is the longest
	return resp.AppendBulk(dst, strconv.AppendInt(digits[:0], n, 10))
}
