package command

import (
	"bytes"
	"errors"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/refusal"
	"github.com/redlock-go/redlock/resp"
)

// Answers reads the reply to a command of n operands as one answer for each of them.
//
//	for a.Begin(k, f, n, v); a.Next(); {
//		a.Granted
//	}
//
// There are n answers, or fewer if the reply does not fit. Answers can be reused, and allocate nothing. Error replies
// are for [Refused].
type Answers struct {
	Granted bool           // the node did as asked; else the key does not hold the token
	Gated   bool           // only a gate has refused it
	Fenced  fencing.Answer // of a script of package fencing; else Code is 0
	Fits    bool           // after the last Next: the whole reply fits. If not, the stream is no longer trusted

	form     Form
	fenced   bool
	all      bool  // one answer counts for all operands, such as one about the node
	most     int64 // the largest number in an answer
	left     int   // answers to come
	elements resp.Elements
}

// Begin starts with a reply to a command of a kind, in a form. The reply must not change before its answers are read.
func (a *Answers) Begin(k Kind, f Form, n int, v *resp.Value) {
	a.form, a.fenced, a.left, a.most = f, f.IsFenced(k), n, 1
	a.Gated, a.Fenced = false, fencing.Answer{}
	if k == Acquire {
		a.most = 2
	}
	yesOrNo := v.Kind == resp.Integer && (v.Int == 0 || v.Int == 1)
	a.all = true
	switch {
	case f.IsScript(k) && v.Kind == resp.Integer: // their number, if all is done
		a.Granted, a.Fits = true, v.Int == int64(n) && (k != Extend || f&Shared != 0)
	case a.fenced && isOfNode(v):
		a.Granted = false
		a.Fenced, a.Fits = readFenced(v)
	case f.IsScript(k):
		a.all, a.Fits = false, v.Kind == resp.Array && !v.Null && v.Int == int64(n)
		a.elements = v.Elements()
	case k == Release:
		a.Granted, a.Fits = v.Int == 1, yesOrNo
	case k == Look:
		a.Granted, a.Fits = v.Int == 0, yesOrNo
	default: // SET
		a.Granted, a.Fits = !v.Null, v.Null || v.IsOK()
	}
	if !a.Fits {
		a.left = 0
	}
}

// Next moves on to the next answer, the first one at first. It returns false if there is none, or
// if the reply does not fit from here on.
func (a *Answers) Next() bool {
	if a.left == 0 {
		return false
	}
	a.left--
	if a.all {
		return true
	}
	a.elements.Next()
	v := a.elements.Value()
	if v.Kind == resp.Integer && (!a.fenced || a.form&Shared != 0) {
		a.Granted, a.Gated, a.Fenced = v.Int == 1, v.Int == 2, fencing.Answer{}
		a.Fits = v.Int >= 0 && v.Int <= a.most
	} else {
		a.Fenced, a.Fits = readFenced(v)
		a.Fits = a.Fits && a.fenced
	}
	if !a.Fits {
		a.left = 0
	}
	return a.Fits
}

// isOfNode reports whether the whole reply of a script of package fencing is a code and its text: the node has no vote.
func isOfNode(v *resp.Value) bool {
	if v.Kind != resp.Array || v.Int != 2 {
		return false
	}
	it := v.Elements()
	return it.Next() && it.Value().Kind == resp.Integer && it.Next() && it.Value().Kind == resp.Bulk
}

// readFenced reads an answer of a script of package fencing: an element of its reply, or all of it.
func readFenced(v *resp.Value) (a fencing.Answer, fits bool) {
	switch {
	case v.Kind == resp.Integer && (v.Int == int64(fencing.OK) || v.Int == int64(fencing.Gone)):
		return fencing.Answer{Code: fencing.Code(v.Int)}, true
	case v.Kind != resp.Array || v.Null || v.Int != 2:
		return a, false
	}
	it := v.Elements()
	it.Next()
	code := it.Value().Int
	if it.Value().Kind != resp.Integer || code < int64(fencing.OK) || code > int64(fencing.Invalid) {
		return a, false
	}
	a.Code = fencing.Code(code)
	it.Next()
	text := it.Value()
	if text.Kind != resp.Bulk || text.Null {
		return a, false
	}
	number, marker, shows := bytes.Cut(text.Bytes, []byte{' '})
	switch {
	case shows:
		marker, age, hasAge := bytes.Cut(marker, []byte{' '})
		a.Text = string(marker)
		if micros, err := strconv.ParseUint(string(age), 10, 53); err == nil {
			a.Age = time.Duration(micros) * time.Microsecond
		} else if hasAge {
			return a, false
		}
	case a.Code == fencing.Amnesia, a.Code == fencing.Foreign:
		a.Text = string(number)
		return a, true
	}
	for _, c := range number {
		if c < '0' || c > '9' || a.Token > fencing.MaxToken {
			return a, false
		}
		a.Token = 10*a.Token + fencing.Token(c-'0')
	}
	return a, a.Token <= fencing.MaxToken
}

// Remedy is the way to go on after a refused command.
type Remedy uint8

const (
	// None: the votes fail.
	None Remedy = iota
	// Spell: send it again, by the text of the script lost by the node.
	Spell
	// Split: send it again in smaller calls, see SplitTo. Several operands share the call, and
	// the refusal may be about one of them.
	Split
	// Rephrase: send it again as a script call. The native command is missing or no longer
	// allowed; use scripts from now on.
	Rephrase
)

// Refusal is the meaning of an error reply to a command with votes.
type Refusal struct {
	refusal.Refusal
	Unapplied bool // the command was certainly not executed
	NotHeld   bool // a release has met a value of another type, such as a shared lock
	Remedy    Remedy
}

var errNoScript = errors.New("server keeps forgetting the script")

// Refused interprets an error reply to a command of n operands. byText says that the command has called a script by its
// text.
func Refused(k Kind, f Form, n int, v *resp.Value, byText bool) Refusal {
	r, call := Refusal{Refusal: refusal.Read(v)}, f.IsScript(k)
	switch r.Code {
	case "NOPERM", "NOAUTH", "READONLY", "MASTERDOWN": // servers return these only before they execute a command
		r.Unapplied = true
	default:
		r.Unapplied = r.Later
	}
	r.NotHeld = k == Release && n == 1 && r.OfType
	switch {
	case r.NotHeld:
	case call && r.Code == "NOSCRIPT":
		r.Err = errNoScript
		if !byText {
			r.Remedy = Spell
		}
	case r.Fatal:
	case call && k == Acquire: // part of it may be done: the keys already set are released
		r.Unapplied = false
		if n > 1 && r.Code == "NOPERM" && r.OfKey { // but an access list is checked for all keys first
			r.Remedy = Split
		}
	case call && n > 1 && !r.Later && !r.Lacks:
		r.Remedy = Split
	case call, k == Acquire, k == Look:
	case (r.Code == "NOPERM" || r.Code == "ERR") && !r.OfKey: // a script call for the key would fare no better
		r.Remedy = Rephrase
	}
	return r
}

// SplitTo is the number of operands in each call after a refused call of n is split. In two steps a refused key costs
// 24 calls instead of 128, and the other keys one round trip more.
func SplitTo(n int) int {
	if n > 16 {
		return 16
	}
	return 1
}
