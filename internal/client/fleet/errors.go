package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/wire/refusal"
)

// misconfigured reports whether a node must not be used for locks, now or later, healthy or not: it is another node's
// second address, a replica, part of a cluster, or a sentinel. A client should not start with one.
func misconfigured(err error) bool {
	return errors.Is(err, conn.ErrSameServer) || errors.Is(err, conn.ErrNotMaster) ||
		errors.Is(err, conn.ErrCluster) || errors.Is(err, conn.ErrSentinel)
}

// permanent reports whether only a change of configuration, here or on the server, will end err: a misconfigured
// node, refused credentials, missing permissions or scripts, unknown commands, untrusted certificates, and other
// protocols than ours. Such a node is dialed at most once a second.
func permanent(err error) bool {
	return misconfigured(err) || errors.Is(err, conn.ErrAuth) || errors.Is(err, conn.ErrForbidden) || errors.Is(err, conn.ErrNoRunID) || errors.Is(err, conn.ErrTooOld) ||
		errors.Is(err, conn.ErrUnscripted) || errors.Is(err, conn.ErrNotRESP) || errors.Is(err, conn.ErrNotTLS) ||
		errors.Is(err, conn.ErrRefused) || errors.Is(err, conn.ErrUntrusted) || errors.Is(err, refusal.ErrProtected)
}

// classes is the kinds of errors that kept a node down, each to be reported once.
type classes []string

// maxClasses bounds how many are told apart.
const maxClasses = 16

// isNew notes the class of an error, and reports whether it is new. The class is one of the errors below, or else the
// innermost error, such as "connection refused".
func (c *classes) isNew(err error) bool {
	class := ""
	for _, of := range []error{
		conn.ErrAuth, conn.ErrForbidden, conn.ErrUnscripted, conn.ErrNotMaster, conn.ErrCluster, conn.ErrSentinel, conn.ErrSameServer, conn.ErrNoRunID, conn.ErrTooOld, conn.ErrNotRESP,
		conn.ErrNotTLS, conn.ErrUntrusted, refusal.ErrProtected, refusal.ErrCrowded, conn.ErrRefused, conn.ErrStalled, os.ErrDeadlineExceeded,
	} {
		if errors.Is(err, of) {
			class = of.Error()
			break
		}
	}
	for inner := err; inner != nil; {
		err, inner = inner, errors.Unwrap(inner)
		if hidden, ok := err.(*cause); ok {
			inner = hidden.err
		}
	}
	class = cmp.Or(class, fmt.Sprint(err)) // unlike Error it may be called on a nil inside
	if slices.Contains(*c, class) || len(*c) == maxClasses {
		return false
	}
	*c = append(*c, class)
	return true
}

// notSent marks a cause with ErrNotSent: no byte of a command was written.
type notSent struct{ cause error }

func (e *notSent) Error() string { return e.cause.Error() }
func (e *notSent) Unwrap() error { return e.cause }

// Is reports ErrNotSent. An Unwrap of two errors would allocate a slice for each batch that fails on a node that is
// down.
func (e *notSent) Is(target error) bool { return target == conn.ErrNotSent }
