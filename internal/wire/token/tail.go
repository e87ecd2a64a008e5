package token

import (
	"context"
	"strings"
	"sync/atomic"
)

// Marks between a token and a value sent by a client of a front end, in the value at a key. They
// differ from NameMark: the value is a secret. The holder, if there is one, stands before it, between
// two marks, and is shown.
const (
	valueMark  = "|"
	keptMark   = "!" // the front end keeps the lock alive: no other gives it a TTL
	holderMark = "~" // a holder, valueMark and the value
	keptHolder = "^" // the same, of a lock kept alive
)

// HolderFits returns a holder that may stand before a value: without marks, and with no more bytes than are left of most.
func HolderFits(holder, value string, most int) string {
	left := most - Size - len(value) - len(holderMark+valueMark)
	if left <= 0 || strings.Contains(holder, valueMark) {
		return ""
	}
	return holder[:min(len(holder), left)]
}

type tailKey struct{}

// tails is set once a context has a tail: a process without a front end searches none.
var tails atomic.Bool

// WithValue returns a context of acquires. The value at the key becomes a token followed by value, in place of the
// client's name. So a front end gives each lock the value of its own client. The token stays fresh for each attempt:
// clients reuse values, and the late release of an earlier attempt must not free a later lock. The holder is shown to
// operators.
func WithValue(ctx context.Context, holder, value string) context.Context {
	if holder != "" {
		return withTail(ctx, holderMark+holder+valueMark+value)
	}
	return withTail(ctx, valueMark+value)
}

// WithKeptValue is WithValue for a lock kept alive by its front end. Others see this by the value.
func WithKeptValue(ctx context.Context, holder, value string) context.Context {
	if holder != "" {
		return withTail(ctx, keptHolder+holder+valueMark+value)
	}
	return withTail(ctx, keptMark+value)
}

func withTail(ctx context.Context, tail string) context.Context {
	tails.Store(true)
	return context.WithValue(ctx, tailKey{}, tail)
}

// IsKept reports whether WithKeptValue has put stored at a key.
func IsKept(stored string) bool {
	mark, _, _, is := ofFrontEnd(stored)
	return is && (mark == keptMark || mark == keptHolder)
}

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
	if _, _, value, is := ofFrontEnd(stored); is {
		return value
	}
	return stored
}

// HolderIn returns the holder of a lock of a front end, or "". stored may lack the value.
func HolderIn(stored string) string {
	_, holder, _, _ := ofFrontEnd(stored)
	return holder
}

// ofFrontEnd takes apart a value stored by a front end.
func ofFrontEnd(stored string) (mark, holder, value string, is bool) {
	if len(stored) <= Size {
		return "", "", "", false
	}
	mark, value = stored[Size:Size+1], stored[Size+1:]
	switch mark {
	case valueMark, keptMark:
	case holderMark, keptHolder:
		var found bool
		holder, value, found = strings.Cut(value, valueMark)
		if !found {
			return "", "", "", false
		}
	default:
		return "", "", "", false
	}
	for _, c := range []byte(stored[:Size]) {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return "", "", "", false
		}
	}
	return mark, holder, value, true
}
