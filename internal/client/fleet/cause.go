package fleet

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strings"
)

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
