package luascript

import "time"

// MaxSource is the size of the longest text that Parse accepts, in bytes.
const MaxSource = 64 << 10

// Script is a text that Parse has accepted, or an entry of a list. It does not change, and may be
// used by several goroutines.
type Script struct {
	name string
	main *block
}

// Name returns the SHA1 of the script in lower-case hex.
func (s *Script) Name() string { return s.name }

// Parse reads the text of a script. The error is a *Refusal. It does not keep source.
func Parse(source []byte) (s *Script, err error) {
	name := Name(source)
	defer catch(name, &err)
	refuse("not yet")
	return &Script{name: name}, nil
}

// Classify returns what the script does when it is called with these keys and arguments at the
// wall-clock time now, which only absolute times (PXAT, PEXPIREAT) are compared with. The error is
// a *Refusal.
func (s *Script) Classify(keys, argv [][]byte, now time.Time) (plan Plan, err error) {
	defer catch(s.name, &err)
	refuse("not yet")
	return plan, nil
}

// ParseList reads a list of scripts that are known by their hash.
func ParseList(text []byte) ([]*Script, error) { return nil, nil }

type block struct{}
