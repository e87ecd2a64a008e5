package token

import (
	"context"
	"sync/atomic"
)

// Marks between a token and a value sent by a client of a front end, in the value at a key. They
// differ from NameMark: the value is a secret and a name is shown.
const (
	valueMark = "|"
	keptMark  = "!" // the front end keeps the lock alive: no other gives it a TTL
)

type tailKey struct{}

// tails is set once a context has a tail: a process without a front end searches none.
var tails atomic.Bool

// WithValue returns a context of acquires: the value at the key is a token and then value, in place of the client's
// name. So a front end gives each lock the value of its own client. The token stays fresh for each attempt: clients
// reuse values, and the late release of an earlier attempt must not free a later lock.
func WithValue(ctx context.Context, value string) context.Context {
	return withTail(ctx, valueMark+value)
}

// WithKeptValue is WithValue for a lock kept alive by its front end. Others see this by the value.
func WithKeptValue(ctx context.Context, value string) context.Context {
	return withTail(ctx, keptMark+value)
}

func withTail(ctx context.Context, tail string) context.Context {
	tails.Store(true)
	return context.WithValue(ctx, tailKey{}, tail)
}

// IsKept reports whether WithKeptValue has put stored at a key.
func IsKept(stored string) bool { return ValueIn(stored) != stored && stored[Size:Size+1] == keptMark }

// TailFrom returns the text after the token by WithValue, or "".
func TailFrom(ctx context.Context) string {
	if !tails.Load() {
		return ""
	}
	tail, _ := ctx.Value(tailKey{}).(string)
	return tail
}

// ValueIn returns the value put at a key by WithValue or WithKeptValue, or all of stored if it is another client's.
func ValueIn(stored string) string {
	if len(stored) <= Size {
		return stored
	} else if mark := stored[Size : Size+1]; mark != valueMark && mark != keptMark {
		return stored
	}
	for _, c := range []byte(stored[:Size]) {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return stored
		}
	}
	return stored[Size+1:]
}
