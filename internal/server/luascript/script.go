package luascript

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
)

// MaxSource is the size of the longest text accepted by Parse, in bytes: some four times that of
// the longest known lock script. It takes about a millisecond.
const MaxSource = 8 << 10

// Script is a text accepted by Parse, or one standing for another. It does not change, and several
// goroutines may use it.
type Script struct {
	name  string
	main  statement
	slots int
	keys  int // of an alias: how many members of KEYS are keys; 0: all
}

// Name returns the SHA1 of the script in lower-case hex.
func (s *Script) Name() string { return s.name }

// Name returns the name under which EVALSHA calls a script: its SHA1 in lower-case hex. It is a
// name, not a protection.
func Name(source []byte) string {
	sum := sha1.Sum(source)
	return hex.EncodeToString(sum[:])
}

// Parse reads the text of a script. The error is a *Refusal. It does not keep source.
func Parse(source []byte) (s *Script, err error) {
	s = &Script{name: Name(source)}
	defer catch(s.name, &err)
	if len(source) > MaxSource {
		refuse("the text has %d bytes, where %d is the most", len(source), MaxSource)
	}
	s.main, s.slots = parse(string(source))
	return s, nil
}

// Refusal is the error of a script without a Plan. It contains no argument of a call.
type Refusal struct {
	SHA1   string // the name of the script
	Reason string // "HGET on KEYS[1]"
}

func (r *Refusal) Error() string {
	return "script " + r.SHA1 + " is not a lock script this server knows: " + r.Reason
}

// refused is the panic value inside the package; Parse and Classify make it a Refusal.
type refused string

// refuse leaves Parse or Classify: a recursive parser would otherwise consist of checks for errors.
func refuse(format string, args ...any) {
	panic(refused(fmt.Sprintf(format, args...)))
}

// catch makes a refuse the error of the deferring function.
func catch(name string, err *error) {
	switch reason := recover().(type) {
	case nil:
	case refused:
		*err = &Refusal{SHA1: name, Reason: string(reason)}
	default:
		panic(reason)
	}
}
