package command

import (
	"strconv"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// Operand is one key of a command, with its token and TTL. The value at the key is Token, then Tail.
type Operand struct {
	Key, Token []byte
	TTL        int64 // in milliseconds, of kinds with a TTL; how long a released key stays, 0: it is deleted
	Tail       string
	Shared     bool          // it is a holder of a shared lock
	Block      fencing.Block // of a fenced acquire
}

// Fence has the arguments of the scripts of package fencing beside the operands.
type Fence struct {
	Set string                  // the key of the fleet's tokens
	Me  [quorum.MaxNodes][]byte // by node: the fleet, and the node's present life
	// Known is, by node, the marker last shown, if it serves the client and does not follow from Me; else nil.
	Known [quorum.MaxNodes][]byte
}

// callBytes bounds the keys of a script call in bytes, as MaxKeys bounds their number. A server answers after reading
// the whole call, and a server without an answer within StallTimeout counts as dead.
const callBytes = 64 << 10

// Merge returns the number of operands, from the first on, for the next command: one, or for a script call at most
// limit. The blocks of an acquire's call are equally long, and the keys of a release's call stay for the same time.
func Merge(k Kind, f Form, operands []Operand, limit int) int {
	n, bytes := 1, len(operands[0].Key)
	if !f.IsScript(k) {
		return n
	}
	for ; n < min(len(operands), limit, MaxKeys) && bytes < callBytes; n++ {
		if operands[n].Shared != operands[0].Shared || k == Acquire && operands[n].Block.Spare() != operands[0].Block.Spare() || k == Release && operands[n].TTL != operands[0].TTL {
			break
		}
		bytes += len(operands[n].Key)
	}
	return n
}

// Append writes one command for all operands; see [Merge]. A fenced Form needs fence.
func Append(dst []byte, k Kind, f Form, operands []Operand, fence *Fence) []byte {
	op := &operands[0]
	switch {
	case f.IsScript(k):
		return appendCall(dst, k, f, operands, fence)
	case k == Acquire: // SET key token NX PX ttl
		dst = append(dst, "*6\r\n$3\r\nSET\r\n"...)
		dst = resp.AppendBulk(dst, op.Key)
		dst = appendToken(dst, op)
		dst = append(dst, "$2\r\nNX\r\n$2\r\nPX\r\n"...)
		return appendInt(dst, op.TTL)
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

// AppendUsual writes the one-line reply of a node that has done everything asked, by a command of n operands. has is
// false for kinds without such a reply.
func AppendUsual(dst []byte, k Kind, f Form, n int) (_ []byte, has bool) {
	switch {
	case k == Acquire && !f.IsScript(k):
		return append(dst, "+OK\r\n"...), true
	case k == Release, k == Acquire: // a native release is of one key
		return append(strconv.AppendInt(append(dst, ':'), int64(n), 10), '\r', '\n'), true
	}
	return dst, false
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

// appendInt appends a number as a bulk, its form in commands.
func appendInt(dst []byte, n int64) []byte {
	var digits [20]byte // -9223372036854775808 is the longest
	return resp.AppendBulk(dst, strconv.AppendInt(digits[:0], n, 10))
}
