package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/resp"
)

// The errors of operations. The root package exports these.
var (
	ErrTaken    = errors.New("redlock: taken: another holder has the lock")
	ErrGated    = error(gatedError{}) // an ErrTaken to callers
	ErrSplit    = errors.New("redlock: split votes: some nodes granted the lock, too many had denied it")
	ErrNoQuorum = errors.New("redlock: no quorum: too few nodes answered")
	ErrNoAnswer = errors.New("redlock: no answer yet")
	ErrExpired  = errors.New("redlock: expired: no validity is left")
	ErrNotHeld  = errors.New("redlock: not held: the lock is gone or another's")
	ErrClosed   = errors.New("redlock: client is closed")
	ErrBusy     = errors.New("redlock: too many operations are waiting")
	ErrStopped  = errors.New("redlock: no longer kept alive: stopped or released")

	ErrUnderWay = WrongArgument("operation was submitted before and is not complete")
)

// ErrArgument is found in every error of a wrong argument. The root package exports it.
var ErrArgument = errors.New("redlock: wrong argument")

// ErrConfig is found in every error of a wrong configuration. The root package exports it.
var ErrConfig = errors.New("redlock: wrong config")

// gatedError is ErrTaken without a holder seen: gates alone have denied it to one who would share it.
type gatedError struct{}

func (gatedError) Error() string {
	return "redlock: taken: exclusive callers come first, no others share the lock for now"
}
func (gatedError) Unwrap() error { return ErrTaken }

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

// MaxTimeout is the default of how long nodes have to answer, unless a
// twentieth of the TTL is less. The algorithm's text asks for "~ 5-50
// milliseconds" with a TTL of 10 s.
const MaxTimeout = 50 * time.Millisecond

// The causes of failed votes and queries.
var (
	errTimeout     = errors.New("no answer in time (NodeTimeout)")
	ErrMisfit      = errors.New("reply does not fit the command")
	errReconnected = errors.New("node has another connection since")
	errForgotten   = errors.New("node has forgotten tokens, and has no vote (Config.Fenced)")
	errStale       = errors.New("node knows a larger fencing token, and refused this one")
	errForeign     = errors.New("node belongs to a fleet with another configuration (Config.Fenced)")
	errOvertaken   = errors.New("must be asked again, but the lock is given up")
)

func misfit(v *resp.Value) error { return fmt.Errorf("%w: %v", ErrMisfit, v.Kind) }
