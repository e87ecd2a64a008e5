package command

import (
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/refusal"
	"github.com/redlock-go/redlock/resp"
)

// Said is a reply to a command without a vote: numbers, or a refusal in their place.
type Said struct {
	Ints  [4]int64 // an integer, or the elements of an array of up to 4
	Text  string   // a bulk
	Kind  resp.Kind
	OK    bool
	Fence fencing.Answer // of a script of package fencing; else Code is 0
	refusal.Refusal
}

// ReadSaid reads a reply. For a null, and a reply of another kind, it notes only the kind.
func ReadSaid(v *resp.Value) (s Said) {
	s.Kind = v.Kind
	switch {
	case v.IsError():
		s.Refusal = refusal.Read(v)
	case v.Kind == resp.Integer:
		s.Ints[0] = v.Int
	case v.Kind == resp.Array && !v.Null:
		if a, fits := readFenced(v); fits {
			s.Fence = a
		}
		it := v.Elements()
		for i := 0; i < len(s.Ints) && it.Next(); i++ {
			s.Ints[i] = it.Value().Int
		}
	case v.Kind == resp.Bulk:
		s.Text = string(v.Bytes)
	default:
		s.OK = v.IsOK()
	}
	return s
}
