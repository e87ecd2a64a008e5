package command

import (
	"errors"

	"github.com/redlock-go/redlock/internal/refusal"
	"github.com/redlock-go/redlock/resp"
)

// Answer is what a reply says of one operand: a vote, and for kinds that read
// something what was read.
type Answer struct {
	Granted bool        // the node did what was asked for; else the key is not the token's
	Value   *resp.Value // nil for kinds that only vote
}

// Read appends what a reply to a command of n operands says of each, in order. It
// returns false where the reply does not fit the command, or not to its end: the
// stream can no longer be trusted then. A Value is valid as long as v. An error
// reply is for [Refused].
func Read(dst []Answer, k Kind, f Form, n int, v *resp.Value) (answers []Answer, fits bool) {
	switch {
	case f.IsScript(k):
		if v.Kind != resp.Array || v.Null || v.Int != int64(n) {
			return dst, false
		}
		for it := v.Elements(); it.Next(); {
			e := it.Value()
			if !isYesOrNo(e) {
				return dst, false
			}
			dst = append(dst, Answer{Granted: e.Int == 1})
		}
		return dst, true
	case k == Release:
		return append(dst, Answer{Granted: v.Int == 1}), isYesOrNo(v)
	default: // SET
		return append(dst, Answer{Granted: !v.Null}), v.IsOK() || v.Null
	}
}

func isYesOrNo(v *resp.Value) bool { return v.Kind == resp.Integer && (v.Int == 0 || v.Int == 1) }

// Remedy is what to do about a command that was refused.
type Remedy uint8

const (
	// None: the votes fail.
	None Remedy = iota
	// Load: say it again, with the script in front that the node has lost.
	Load
	// Split: say it again in smaller calls, see SplitTo. Several share a call, and it
	// may be about one of them.
	Split
	// Rephrase: say it again as a script call. The native command is not there
	// after all, or no longer allowed; use scripts from now on.
	Rephrase
	// RephraseOnce: say it again as a script call, this time only.
	RephraseOnce
)

// Refusal is what an error reply means.
type Refusal struct {
	Err       error // bounded, printable, never a token or a key
	Fatal     bool  // the connection must be closed
	Unapplied bool  // it is certain that the command was not executed
	Later     bool  // it may be executed at another time
	Remedy    Remedy
}

var errNoScript = errors.New("server keeps forgetting the script")

// Refused says what an error reply to a command of n operands means; loaded tells
// that the script was loaded right before it.
func Refused(k Kind, f Form, n int, text []byte, loaded bool) (r Refusal) {
	code, call := string(resp.Code(text)), f.IsScript(k)
	if call && code == "NOSCRIPT" {
		if r.Err = errNoScript; !loaded {
			r.Remedy = Load
		}
		return r
	}
	r.Fatal, r.Err = refusal.Read(text)
	r.Unapplied = isUnapplied(code)
	r.Later = !r.Fatal && isOfServer(code)
	ofKey := refusal.OfKey(text)
	switch {
	case r.Fatal:
	case call && n > 1 && !isOfServer(code) && (ofKey || !errors.Is(r.Err, refusal.ErrForbidden)):
		r.Remedy = Split
	case call, k == Acquire:
	case (code == "NOPERM" || code == "ERR") && !ofKey: // by script a key would fare no better
		r.Remedy = Rephrase
	case k == Extend && code == "OOM": // SET needs memory; PEXPIRE, in the script, does not
		r.Remedy = RephraseOnce
	}
	return r
}

// SplitTo is how many operands the calls have that a call of n is split into. In two
// steps a key that is refused costs 24 calls, not 128, for which the others wait one
// round trip longer.
func SplitTo(n int) int {
	if n > 16 {
		return 16
	}
	return 1
}

// isUnapplied says of an error's code that servers check for it before they
// execute a command.
func isUnapplied(code string) bool {
	switch code {
	case "NOPERM", "NOAUTH", "READONLY", "MASTERDOWN":
		return true
	}
	return isOfServer(code)
}

// isOfServer says of an error's code that it is about the state of the server, not
// about a key.
func isOfServer(code string) bool {
	switch code {
	case "OOM", "MISCONF", "BUSY", "LOADING", "NOREPLICAS":
		return true
	}
	return false
}
