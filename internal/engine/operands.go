package engine

import "github.com/redlock-go/redlock/resp"

// operands reads the keys, tokens and TTLs back out of a command that was written
// by this package, for when its operations have gone: a release that a node could
// not be given, and a native command that is said again as a script call.
type operands struct {
	keys, tokens, ttls [][]byte // they point into the command

	args [][]byte // used again
}

// read cannot fail: the bytes are our own.
func (o *operands) read(kind Kind, command []byte) {
	d := resp.Decoder{Limits: resp.Limits{Bulk: MaxKey, Elements: 1 << 10, Depth: 1}}
	var v resp.Value
	if _, err := d.Decode(command, &v); err != nil {
		panic("redlock: a command of its own making is malformed: " + err.Error())
	}
	o.args = o.args[:0]
	it := v.Elements()
	for it.Next() {
		o.args = append(o.args, it.Value().Bytes)
	}
	args := o.args
	switch string(args[0]) {
	case "EVALSHA": // sha n key… token… ttl…
		each := 2
		if kind == Extend {
			each = 3
		}
		n := (len(args) - 3) / each
		o.keys, o.tokens, o.ttls = args[3:3+n], args[3+n:3+2*n], args[3+2*n:]
	case "DELEX": // key IFEQ token
		o.keys, o.tokens, o.ttls = args[1:2], args[3:4], nil
	default: // DELIFEQ key token, SET key token … ttl
		o.keys, o.tokens, o.ttls = args[1:2], args[2:3], args[len(args)-1:]
	}
}

// appendAsCall writes a native release or extend as a script call.
func appendAsCall(dst []byte, kind Kind, sha string, native []byte) []byte {
	var o operands
	o.read(kind, native)
	dst = appendEvalSHA(dst, kind, sha, 1)
	dst = resp.AppendBulk(dst, o.keys[0])
	dst = resp.AppendBulk(dst, o.tokens[0])
	if kind == Extend {
		dst = resp.AppendBulk(dst, o.ttls[0])
	}
	return dst
}
