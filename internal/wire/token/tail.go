package token

import "context"

// These stand between a token and a value that a client of a front end has sent, in the value at a
// key. They are other marks than NameMark, since that value is a secret and a name is shown.
const (
	valueMark = "|"
	keptMark  = "!" // the front end keeps the lock alive: none other may give it a TTL
)

type tailKey struct{}

// valued is a context with a tail: cheaper than one of context.WithValue, since it is made for each
// acquire of a front end.
type valued struct {
	context.Context
	tail string
}

func (c *valued) Value(key any) any {
	if _, ok := key.(tailKey); ok {
		return c.tail
	}
	return c.Context.Value(key)
}

// WithValue returns a context of acquires: the value at the key is a token and then value, in place
// of the name of the client. A front end gives each lock the value of its own client in this way.
// The token stays fresh for each attempt: clients use one value many times, and the late release of
// an earlier attempt must not free a later lock.
func WithValue(ctx context.Context, value string) context.Context {
	return &valued{ctx, valueMark + value}
}

// WithKeptValue is WithValue for a lock that its front end keeps alive, which others see by it.
func WithKeptValue(ctx context.Context, value string) context.Context {
	return &valued{ctx, keptMark + value}
}

// IsKept reports whether WithKeptValue has put stored at a key.
func IsKept(stored string) bool { return ValueIn(stored) != stored && stored[Size:Size+1] == keptMark }

// TailFrom returns what follows the token by WithValue, or "".
func TailFrom(ctx context.Context) string {
	tail, _ := ctx.Value(tailKey{}).(string)
	return tail
}

// ValueIn returns the value that WithValue or WithKeptValue has put at a key, or all of what is stored there if that
// is another client's.
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
