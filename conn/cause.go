package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/redlock-go/redlock/internal/wire/refusal"
)

// errFirstDial is why a node is down that has not been dialed before.
var errFirstDial = fmt.Errorf("%w: its first dial is under way", ErrDown)

// Classes of errors that keep a node down. An error is of the first that it is. With a misfit a node must not be used
// for locks, now or later, healthy or not: it is another node's second address, a replica, part of a cluster, or a
// sentinel. A client should not start with one.
var (
	misfits = []error{ErrNotMaster, ErrCluster, ErrSentinel, ErrSameServer}
	lasting = append([]error{
		ErrAuth, ErrForbidden, ErrUnscripted, ErrNoRunID, ErrTooOld,
		ErrNotRESP, ErrNotTLS, ErrUntrusted, ErrRejected, refusal.ErrProtected, ErrRefused,
	}, misfits...)
	named = append([]error{refusal.ErrCrowded, ErrStalled, os.ErrDeadlineExceeded}, lasting...)
)

func classOf(err error, classes []error) error {
	for _, class := range classes {
		if errors.Is(err, class) {
			return class
		}
	}
	return nil
}

// permanent reports whether only a change of configuration, here or on the server, will end err. Such a node is
// dialed at most once a second.
func permanent(err error) bool { return classOf(err, lasting) != nil }

// classes is the kinds of errors that kept a node down, each to be reported once.
type classes []string

// maxClasses bounds how many are distinguished.
const maxClasses = 16

// isNew notes the class of an error, and reports whether it is new. The class is a named one, or else the innermost
// error, such as "connection refused".
func (c *classes) isNew(err error) bool {
	if class := classOf(err, named); class != nil {
		err = class
	}
	for inner := err; inner != nil; {
		err, inner = inner, errors.Unwrap(inner)
		if hidden, ok := err.(*cause); ok {
			inner = hidden.err
		}
	}
	class := fmt.Sprint(err) // unlike Error it may be called on a nil inside
	if slices.Contains(*c, class) || len(*c) == maxClasses {
		return false
	}
	*c = append(*c, class)
	return true
}

// notSent marks a node's failure with ErrNotSent: no byte of a command was written.
type notSent struct{ cause *Error }

func (e *notSent) Error() string { return e.cause.Error() }
func (e *notSent) Unwrap() error { return e.cause }

// Is reports ErrNotSent. An Unwrap of two errors would allocate a slice for each batch that fails on a node that is
// down.
func (e *notSent) Is(target error) bool { return target == ErrNotSent }

// cause is why a node has failed. Its text does not repeat the node's name. errors.Is and errors.As find everything
// in err, but not the errors in hidden. These have another meaning to callers: a context's error means that they gave
// up themselves. So there is no Unwrap.
type cause struct {
	text   string
	err    error
	hidden []error
}

func (c *cause) Error() string { return c.text }

// Is is called by errors.Is, which looks no further.
func (c *cause) Is(target error) bool {
	return !slices.Contains(c.hidden, target) && errors.Is(c.err, target)
}

// As is called by errors.As, which looks no further.
func (c *cause) As(target any) bool { return errors.As(c.err, target) }

// ofContexts are the errors of elapsed time. A dial's time is not its caller's.
var ofContexts = []error{context.DeadlineExceeded, context.Canceled, os.ErrDeadlineExceeded}

// causeOf makes an error fit to be a node's: see [cause]. It is called once for each ended connection, and for each
// dial.
func (f *Fleet) causeOf(err error) error {
	text := nameless(err)
	hide := slices.ContainsFunc(f.hidden, func(h error) bool { return errors.Is(err, h) })
	if !hide && text == err.Error() {
		return err
	}
	return &cause{text, err, f.hidden}
}

// ofUser reads an error that may be of user code: its methods are user code too. The caller holds no lock, and recovers
// their panics.
func ofUser(err error) error {
	_ = errors.Is(err, errFirstDial) // calls them all
	return &cause{nameless(err), err, nil}
}

// nameless is an error's text without the addresses of package net.
func nameless(err error) string {
	text := err.Error()
	var op *net.OpError
	if !errors.As(err, &op) || op.Err == nil {
		return text
	}
	short := op.Err.Error()
	var dns *net.DNSError
	if errors.As(op.Err, &dns) {
		short = "lookup: " + dns.Err
	}
	return strings.Replace(text, op.Error(), short, 1)
}
