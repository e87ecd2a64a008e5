package grants

import "errors"

// refusal is the error of what a client has asked for and this room does not do: it does not depend
// on the nodes.
type refusal string

func (r refusal) Error() string { return string(r) }

const (
	// ErrTTL is found in errors of a TTL that is not allowed.
	ErrTTL = refusal("TTL is not allowed")
	// ErrNoTTL is the error of a lock without an expiry.
	ErrNoTTL = refusal("asks for no expiry; give one, or start the server with -no-ttl")
	// ErrKept is the error of an extension of a lock that another front end keeps alive: its renewals
	// would undo the extension.
	ErrKept = refusal("was granted without an expiry, which the server that has granted it alone can change: give it one there, or release it")
	// ErrTooMany is the error of a lock that would be kept alive beside too many others.
	ErrTooMany = refusal("would be kept alive beside too many others; release some, or give them an expiry")
	// ErrEternal is the error of a value without an expiry, which is no lock for any client of the nodes.
	ErrEternal = refusal("is a value without an expiry at the nodes, which is no lock: delete it there")
)

// IsRefusal reports whether an error means that the request is refused, and not that the nodes could not
// answer it.
func IsRefusal(err error) bool { return errors.As(err, new(refusal)) }
