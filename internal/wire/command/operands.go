package command

import (
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/resp"
)

// Reader reads the operands from a command written by Append. Reuse does not allocate: while a node
// is down each batch is read.
type Reader struct {
	args     [][]byte
	operands []Operand
}

// maxArgument bounds an argument in bytes. It is above the longest key.
const maxArgument = 1 << 20

// ownDecoder decodes commands of the client's own making.
func ownDecoder() resp.Decoder {
	return resp.Decoder{Limits: resp.Limits{Bulk: maxArgument, Elements: 1 << 10, Depth: 1}}
}

// Read returns operands pointing into the command, valid until the next Read. It panics if the
// command is not Append's.
func (r *Reader) Read(k Kind, command []byte) []Operand {
	d := ownDecoder()
	var v resp.Value
	if _, err := d.Decode(command, &v); err != nil {
		panic("redlock: a command of its own making is malformed: " + err.Error())
	}
	clear(r.args) // they point into buffers that may be large
	clear(r.operands)
	r.args, r.operands = r.args[:0], r.operands[:0]
	for it := v.Elements(); it.Next(); {
		r.args = append(r.args, it.Value().Bytes)
	}
	args := r.args
	switch string(args[0]) {
	case "EVALSHA", "EVAL":
		if !r.readShared(k) {
			r.readCall(k)
		}
	case "DELEX": // key IFEQ token
		r.operands = append(r.operands, Operand{Key: args[1], Token: args[3]})
	case "DELIFEQ": // key token
		r.operands = append(r.operands, Operand{Key: args[1], Token: args[2]})
	default: // SET key token … ttl
		r.operands = append(r.operands, Operand{Key: args[1], Token: args[2], TTL: number(args[len(args)-1])})
	}
	return r.operands
}

// readCall reads a command of appendCall.
func (r *Reader) readCall(k Kind) {
	n := int(number(r.args[2]))
	keys, rest := r.args[3:3+n], r.args[3+n:]
	var spare, ttl, lasts []byte // of a fenced acquire
	switch string(r.args[1]) {
	case fencing.AcquireSHA1, fencing.AcquireScript:
		spare, ttl, lasts = rest[2], rest[3], rest[4]
		keys, rest = keys[1:], rest[5:] // behind the set, and me
	case fencing.ExtendSHA1, fencing.ExtendScript:
		keys, rest = keys[1:], rest[1:]
	}
	for i, key := range keys {
		op := Operand{Key: key, Token: rest[i]}
		if lasts != nil {
			op.Block.Last = fencing.Token(number(lasts[i*fencing.LastDigits:][:fencing.LastDigits]))
			op.Block.First = op.Block.Last - fencing.Token(number(spare))
		}
		switch {
		case len(ttl) > 0:
			op.TTL = number(ttl)
		case k.HasTTL():
			op.TTL = number(rest[len(keys)+i])
		case k == Release && len(rest) > len(keys): // it stays
			op.TTL = number(rest[len(keys)])
		}
		r.operands = append(r.operands, op)
	}
}

// number reads decimal digits.
func number(digits []byte) (n int64) {
	for _, c := range digits {
		n = 10*n + int64(c-'0')
	}
	return n
}
