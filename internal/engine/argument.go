package engine

import (
	"errors"
	"fmt"
	"time"
)

// ErrArgument is what every error of a wrong argument is. The root package exports it.
var ErrArgument = errors.New("redlock: wrong argument")

// argumentError says what was given, and what is allowed.
type argumentError struct{ text string }

func (e *argumentError) Error() string        { return e.text }
func (e *argumentError) Is(target error) bool { return target == ErrArgument }

// WrongArgument returns an error that is [ErrArgument].
func WrongArgument(format string, args ...any) error {
	return &argumentError{"redlock: " + fmt.Sprintf(format, args...)}
}

// wrongTTL names the TTL as it was given, before it was rounded.
func (e *Engine) wrongTTL(given time.Duration) error {
	limit := ""
	if e.maxTTL < MaxTTL {
		limit = " (MaxTTL)"
	}
	return WrongArgument("ttl is %v, from %v to %v%s are allowed", given, MinTTL, e.maxTTL, limit)
}
