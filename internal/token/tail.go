package token

import "context"

// valueMark stands between a token and a value that a client of a front end has sent, in the value
// at a key. It is another mark than NameMark, since that value is a secret and a name is shown.
const valueMark = "|"

type tailKey struct{}

// WithValue returns a context of acquires: the value at the key is a token and then value, in place
// of the name of the client. A front end gives each lock the value of its own client in this way.
// The token stays fresh for each attempt: clients use one value many times, and the late release of
// an earlier attempt must not free a later lock.
func WithValue(ctx context.Context, value string) context.Context {
	return context.WithValue(ctx, tailKey{}, valueMark+value)
}

// TailFrom returns what follows the token by WithValue, or "".
func TailFrom(ctx context.Context) string {
	tail, _ := ctx.Value(tailKey{}).(string)
	return tail
}

// ValueIn returns the value that WithValue has put at a key, or all of what is stored there if that
// is another client's.
func ValueIn(stored string) string {
	if len(stored) <= Size || stored[Size:Size+len(valueMark)] != valueMark {
		return stored
	}
	for _, c := range []byte(stored[:Size]) {
		if c != '-' && c != '_' && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return stored
		}
	}
	return stored[Size+len(valueMark):]
}
