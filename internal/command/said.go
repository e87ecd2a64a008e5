package command

import (
	"errors"

	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/refusal"
	"github.com/redlock-go/redlock/resp"
)

// Said is a reply to a command that is no vote: numbers, or why there are none.
type Said struct {
	Ints  [4]int64 // an integer, or the elements of an array of up to 4
	OK    bool
	Fence fencing.Answer // of a script of package fencing; Code is 0 where it is none
	Code  string         // of an error reply
	Err   error          // that reply: bounded, printable, never a token or a key
	Lacks bool           // it says that the access list does not allow a command
	OfKey bool           // it says that the access list allows the command on other keys
	Fatal bool           // the connection must be closed
	Later bool           // it is about the state of the server: another time it may be a better one
}

// ReadSaid reads a reply. A null is the zero Said; so is a reply of no use.
func ReadSaid(v *resp.Value) (s Said) {
	switch {
	case v.IsError():
		s.Code = string(v.Code())
		s.Fatal, s.Err = refusal.Read(v.Bytes)
		s.Later = refusal.IsPassing(s.Code)
		s.OfKey = refusal.OfKey(v.Bytes)
		s.Lacks = !s.OfKey && errors.Is(s.Err, refusal.ErrForbidden)
	case v.Kind == resp.Integer:
		s.Ints[0] = v.Int
	case v.Kind == resp.Array && !v.Null:
		if a, fits := ReadFenced(v); fits {
			s.Fence = a
		}
		it := v.Elements()
		for i := 0; i < len(s.Ints) && it.Next(); i++ {
			s.Ints[i] = it.Value().Int
		}
	default:
		s.OK = v.IsOK()
	}
	return s
}
