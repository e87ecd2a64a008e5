package grants

import "errors"

// refusal is the error of a request outside this room's service: it does not depend on the nodes.
type refusal string

func (r refusal) Error() string { return string(r) }

const (
	// ErrTTL is found in errors of a forbidden TTL.
	ErrTTL = refusal("TTL is not allowed")
	// ErrNoTTL is the error of a lock without an expiry.
	ErrNoTTL = refusal("asks for no expiry; give one, or start the server with -no-ttl")
	// ErrKept is the error of extending a lock kept alive by another front end: its renewals would
	// undo the extension.
	ErrKept = refusal("was granted without an expiry, which the server that has granted it alone can change: give it one there, or release it")
	// ErrTooMany is the error of a lock to be kept alive beside too many others.
	ErrTooMany = refusal("would be kept alive beside too many others; release some, or give them an expiry")
	// ErrValueUsed is the error of a second share by one value, or of too many shares.
	ErrValueUsed = refusal("is shared by a client with this value already, or by too many; each needs a value of its own")
	// ErrEternal is the error of a value without an expiry: no lock for any client of the nodes.
	ErrEternal = refusal("is a value without an expiry at the nodes, which is no lock: delete it there")
	// ErrShared is the error of a shared lock, which any client would release.
	ErrShared = refusal("is a shared lock: its holders release it, by RL.UNLOCK or in Go programs")
)

// IsRefusal reports whether an error is a refusal of the request, not a failure of the nodes to
// answer it.
func IsRefusal(err error) bool { return errors.As(err, new(refusal)) }
