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

// Read returns operands pointing into the command, valid until the next Read. It panics if the
// command is not Append's.
func (r *Reader) Read(k Kind, command []byte) []Operand {
	d := resp.Decoder{Limits: resp.Limits{Bulk: maxArgument, Elements: 1 << 10, Depth: 1}}
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
	case "EVALSHA":
		if sha := string(args[1]); sha == fencing.AcquireSHA1 || sha == fencing.ExtendSHA1 {
			r.readFenced(k)
			break
		}
		// sha n key… token… ttl…
		n := int(number(args[2]))
		for i := range n {
			op := Operand{Key: args[3+i], Token: args[3+n+i]}
			if k == Extend {
				op.TTL = number(args[3+2*n+i])
			}
			r.operands = append(r.operands, op)
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

// readFenced reads a command of appendFenced.
func (r *Reader) readFenced(k Kind) {
	args := r.args
	n := int(number(args[2])) - 1
	keys, rest := args[4:4+n], args[5+n:]
	for i, key := range keys {
		if k == Acquire { // first last token ttl
			own := rest[4*i:]
			block := fencing.Block{First: fencing.Token(number(own[0])), Last: fencing.Token(number(own[1]))}
			r.operands = append(r.operands, Operand{Key: key, Token: own[2], TTL: number(own[3]), Block: block})
		} else {
			r.operands = append(r.operands, Operand{Key: key, Token: rest[i], TTL: number(rest[n+i])})
		}
	}
}

// number reads decimal digits.
func number(digits []byte) (n int64) {
	for _, c := range digits {
		n = 10*n + int64(c-'0')
	}
	return n
}
