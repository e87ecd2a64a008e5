package command

import (
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/resp"
)

// Reader reads the operands from a command written by Append. Its reuse does not allocate: while a node is down, each
// batch is read.
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
	clear(r.args) // they point into possibly large buffers
	clear(r.operands)
	r.args, r.operands = r.args[:0], r.operands[:0]
	for it := v.Elements(); it.Next(); {
		r.args = append(r.args, it.Value().Bytes)
	}
	args := r.args
	switch string(args[0]) {
	case "EVALSHA", "EVAL":
		r.readCall(k)
	case "EXISTS": // key
		r.operands = append(r.operands, Operand{Key: args[1]})
	case "DELEX": // key IFEQ token
		r.operands = append(r.operands, Operand{Key: args[1], Token: args[3]})
	case "DELIFEQ": // key token
		r.operands = append(r.operands, Operand{Key: args[1], Token: args[2]})
	default: // SET key token … ttl
		r.operands = append(r.operands, Operand{Key: args[1], Token: args[2], TTL: number(args[len(args)-1])})
	}
	return r.operands
}

// readCall reads a command written by appendCall, with the digest or with the text of a script.
func (r *Reader) readCall(k Kind) {
	var f Form
	for form, kinds := range scripts {
		if by := string(r.args[1]); by == kinds[k].sha || by == kinds[k].text {
			f = Form(form) << fencedShift
			break
		}
	}
	shared, fenced := f&Shared != 0, f.IsFenced(k)
	keys := r.args[3 : 3+number(r.args[2])]
	rest := r.args[3+len(keys):]
	take := func() []byte {
		word := rest[0]
		rest = rest[1:]
		return word
	}
	if fenced {
		keys = keys[1:] // behind the set
		_ = take()      // me
	}
	step := 1
	var spare, ttl, lasts []byte
	if fenced && !shared && k == Acquire {
		_, spare, ttl, lasts = take(), take(), take(), take()
	}
	if shared && k == Acquire {
		step = 2
		_ = take() // past gates
	}
	for ; len(keys) > 0; keys = keys[step:] {
		n := int64(1)
		if shared {
			n = number(take())
		}
		for ; n > 0; n-- {
			op := Operand{Key: keys[0], Token: take(), Shared: shared}
			if shared && k.HasTTL() {
				op.TTL = number(take())
			}
			r.operands = append(r.operands, op)
		}
	}
	if shared {
		return
	}
	for i := range r.operands {
		op := &r.operands[i]
		if lasts != nil {
			op.Block.Last = fencing.Token(number(lasts[i*fencing.LastDigits:][:fencing.LastDigits]))
			op.Block.First = op.Block.Last - fencing.Token(number(spare))
		}
		switch {
		case len(ttl) > 0:
			op.TTL = number(ttl)
		case k.HasTTL():
			op.TTL = number(take())
		case len(rest) > 0: // a released key stays
			op.TTL = number(rest[0])
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
