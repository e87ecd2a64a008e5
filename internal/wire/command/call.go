package command

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/resp"
)

// fencedShift is the place of Fenced in a Form; Shared is behind it.
const fencedShift = 2

// scripts holds the scripts of the kinds sent as script calls, by the bits Fenced and Shared of their forms.
var scripts = [...][Kinds]struct{ sha, text string }{
	0: {Extend: {ExtendSHA1, ExtendScript}, Release: {ReleaseSHA1, ReleaseScript}},
	Fenced >> fencedShift: {
		Acquire: {fencing.AcquireSHA1, fencing.AcquireScript}, Extend: {fencing.ExtendSHA1, fencing.ExtendScript},
		Release: {ReleaseSHA1, ReleaseScript},
	},
	Shared >> fencedShift: {
		Acquire: {SharedAcquireSHA1, SharedAcquireScript}, Extend: {SharedExtendSHA1, SharedExtendScript},
		Release: {SharedReleaseSHA1, SharedReleaseScript},
	},
	(Shared | Fenced) >> fencedShift: {
		Acquire: {FencedSharedAcquireSHA1, FencedSharedAcquireScript}, Extend: {FencedSharedExtendSHA1, FencedSharedExtendScript},
		Release: {SharedReleaseSHA1, SharedReleaseScript},
	},
}

// texts maps digests to scripts.
var texts = func() map[string]string {
	all := map[string]string{QueueSHA1: QueueScript, SharedLookSHA1: SharedLookScript, fencing.MemberSHA1: fencing.MemberScript}
	for _, kinds := range scripts {
		for _, s := range kinds {
			all[s.sha] = s.text
		}
	}
	delete(all, "") // of kinds without a script
	return all
}()

// callBySHA is the beginning of a script call, but for the number of its words. The digest follows.
const callBySHA = "$7\r\nEVALSHA\r\n$40\r\n"

// appendCall writes EVALSHA sha n [set] key… [me] …, with the other arguments in the order of the script: see its
// comment, and [fencing.AcquireScript]. A gate follows each key of a shared acquire. The marker, if known, ends a
// fenced call.
func appendCall(dst []byte, k Kind, f Form, operands []Operand, fence *Fence) []byte {
	shared, fenced := f&Shared != 0, f.IsFenced(k)
	gates, ttls, stays, known := shared && k == Acquire, k == Extend, !shared && k == Release && operands[0].TTL > 0, []byte(nil)
	keys, more := len(operands), len(operands) // words behind the keys
	if shared {
		keys, ttls = 0, k.HasTTL()
		for rest := operands; len(rest) > 0; rest = rest[ofKey(rest):] {
			keys++
		}
		more += keys
	}
	if gates {
		keys *= 2
		more++
	}
	if fenced {
		keys++
		more++
		known = fence.Known[f.node()]
		if k == Acquire && !shared {
			ttls = differ(operands)
			more += 4
		}
	}
	if ttls {
		more += len(operands)
	}
	if stays || known != nil {
		more++
	}
	dst = resp.AppendArray(dst, 3+keys+more)
	dst = append(append(append(dst, callBySHA...), scripts[f>>fencedShift&3][k].sha...), '\r', '\n')
	dst = appendInt(dst, int64(keys))
	if fenced {
		dst = resp.AppendBulkString(dst, fence.Set)
	}
	for i := range operands {
		if shared && i > 0 && bytes.Equal(operands[i].Key, operands[i-1].Key) {
			continue
		}
		dst = resp.AppendBulk(dst, operands[i].Key)
		if gates {
			dst = appendName(dst, string(operands[i].Key), gateSuffix, "")
		}
	}
	if fenced {
		dst = resp.AppendBulk(dst, fence.Me[f.node()])
		if k == Acquire && !shared {
			dst = appendBlocks(dst, operands, ttls)
		}
	}
	if gates {
		dst = appendInt(dst, int64(f/repairing&1))
	}
	for i := range operands {
		if shared && (i == 0 || !bytes.Equal(operands[i].Key, operands[i-1].Key)) {
			dst = appendInt(dst, int64(ofKey(operands[i:])))
		}
		dst = appendToken(dst, &operands[i])
		if shared && ttls {
			dst = appendInt(dst, operands[i].TTL)
		}
	}
	for i := range operands {
		if ttls && !shared {
			dst = appendInt(dst, operands[i].TTL)
		}
	}
	if stays {
		dst = appendInt(dst, operands[0].TTL)
	}
	if known != nil {
		dst = resp.AppendBulk(dst, known)
	}
	return dst
}

// ofKey counts the first operands with the same key.
func ofKey(operands []Operand) (n int) {
	for n < len(operands) && bytes.Equal(operands[n].Key, operands[0].Key) {
		n++
	}
	return n
}

// differ reports whether operands have different TTLs.
func differ(operands []Operand) bool {
	for i := range operands {
		if operands[i].TTL != operands[0].TTL {
			return true
		}
	}
	return false
}

// appendBlocks writes the least token of all blocks, the number of others in each, the common TTL, and the last token
// of each block.
func appendBlocks(dst []byte, operands []Operand, ttls bool) []byte {
	least := operands[0].Block.First
	for i := range operands {
		least = min(least, operands[i].Block.First)
	}
	dst = appendInt(dst, int64(least))
	dst = appendInt(dst, int64(operands[0].Block.Spare()))
	if ttls {
		dst = resp.AppendBulk(dst, nil)
	} else {
		dst = appendInt(dst, operands[0].TTL)
	}
	dst = strconv.AppendInt(append(dst, '$'), int64(fencing.LastDigits*len(operands)), 10)
	dst = append(dst, '\r', '\n')
	for i := range operands {
		last := uint64(operands[i].Block.Last)
		for range fencing.LastDigits {
			dst = append(dst, '0')
		}
		for at := len(dst) - 1; last > 0; at-- {
			dst[at] = '0' + byte(last%10)
			last /= 10
		}
	}
	return append(dst, '\r', '\n')
}

// ByText makes scripts in written commands, from an offset on, called by their text: EVAL in place of EVALSHA. It is
// for a node that does not know them yet.
func ByText(dst []byte, from int) []byte {
	written := slices.Clone(dst[from:])
	dst = dst[:from]
	d := ownDecoder()
	var v resp.Value
	for len(written) > 0 {
		n, err := d.Decode(written, &v)
		if err != nil {
			panic("redlock: a command of its own making is malformed: " + err.Error())
		}
		head, rest, isCall := bytes.Cut(written[:n], []byte(callBySHA))
		if isCall && !bytes.Contains(head[:len(head)-2], []byte("\n")) { // else it is in an argument
			dst = append(append(dst, head...), "$4\r\nEVAL\r\n"...)
			dst = resp.AppendBulkString(dst, texts[string(rest[:40])])
			dst = append(dst, rest[42:]...)
		} else {
			dst = append(dst, written[:n]...)
		}
		written = written[n:]
	}
	return dst
}
