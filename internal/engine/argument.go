package engine

import (
	"errors"
	"fmt"
	"time"
)

// ErrArgument is found in every error of a wrong argument. The root package exports it.
var ErrArgument = errors.New("redlock: wrong argument")

// ErrConfig is found in every error of a wrong configuration. The root package exports it.
var ErrConfig = errors.New("redlock: wrong config")

// argumentError names what was given, and what is allowed.
type argumentError struct{ text string }

func (e *argumentError) Error() string        { return e.text }
func (e *argumentError) Is(target error) bool { return target == ErrArgument }

// WrongArgument returns an error that is [ErrArgument].
func WrongArgument(format string, args ...any) error {
	return &argumentError{"redlock: " + fmt.Sprintf(format, args...)}
}

// Limits of keys and TTLs. The root package exports these.
const (
	MaxKey = 4 << 10               // bytes
	MinTTL = 10 * time.Millisecond // of which 2.1 ms are drift
	MaxTTL = 365 * 24 * time.Hour
)

// maxTimeout is the default of how long nodes have to answer, unless a
// twentieth of the TTL is less. The algorithm's text asks for "~ 5-50
// milliseconds" with a TTL of 10 s.
const maxTimeout = 50 * time.Millisecond

// limits is what the arguments of an engine's operations are checked by.
type limits struct {
	timeout  time.Duration // for the nodes to answer; 0: it follows from the TTL
	maxTTL   time.Duration
	reserved string // key, or ""
}

// check refuses wrong arguments, rounds the TTL down to whole milliseconds
// and sets the timeout. It runs once for each operation: Submit begins with it, and
// so does Call.
func (l *limits) check(op *Op) error {
	switch {
	case !op.Kind.IsValid():
		return WrongArgument("operation has kind %d, want 1 to %d", op.Kind, Release)
	case op.Done == nil:
		return WrongArgument("operation has no Done")
	case len(op.Key) == 0:
		return WrongArgument("key is empty, 1 to %d bytes are allowed", MaxKey)
	case len(op.Key) > MaxKey:
		return WrongArgument("key has %d bytes, at most %d are allowed", len(op.Key), MaxKey)
	case string(op.Key) == l.reserved:
		return WrongArgument("key is reserved: the nodes keep the fencing tokens there")
	}
	op.Timeout = l.timeout
	if !op.Kind.HasTTL() {
		op.TTL = 0
		if op.Timeout == 0 {
			op.Timeout = maxTimeout
		}
		return nil
	}
	given := op.TTL
	op.TTL = given.Truncate(time.Millisecond)
	if op.TTL < MinTTL || op.TTL > l.maxTTL {
		return l.wrongTTL(given)
	}
	if op.Timeout == 0 {
		op.Timeout = min(op.TTL/20, maxTimeout)
	}
	return nil
}

// wrongTTL names the TTL as it was given, before it was rounded.
func (l *limits) wrongTTL(given time.Duration) error {
	limit := ""
	if l.maxTTL < MaxTTL {
		limit = " (MaxTTL)"
	}
	return WrongArgument("ttl is %v, from %v to %v%s are allowed", given, MinTTL, l.maxTTL, limit)
}
