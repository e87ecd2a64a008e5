package conn

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
)

var (
	// ErrClosed is what becomes of everything once the fleet is closed.
	ErrClosed = errors.New("conn: closed")
	// ErrNotSent marks failures of commands of which no byte was written.
	ErrNotSent = errors.New("not sent")
	// ErrDown is the failure of commands for a node without a connection.
	ErrDown = errors.New("conn: node is down")
	// ErrStalled ends a connection that owes replies and has been silent for
	// longer than the stall bound.
	ErrStalled = errors.New("conn: node is silent")
	// ErrFull ends a connection that owes more replies than its bound.
	ErrFull = errors.New("conn: node owes too many replies")
	// ErrUnsolicited ends a connection that sends what nobody asked for.
	ErrUnsolicited = errors.New("conn: reply to no command")
	// ErrSameServer refuses a node that is another configured node under a
	// second address: its vote would count twice.
	ErrSameServer = errors.New("conn: same server as another node")
	// ErrOversized ends a connection whose reply does not fit the read buffer.
	ErrOversized = errors.New("conn: reply is too large")
)

// Error says which node a failure belongs to and what was being done. Its text is
// one line of at most a few hundred bytes, whatever the node had to say.
type Error struct {
	Addr string // host and port or path, never a credential
	Op   string // "dial" (and greet), "read" or "write"
	Err  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("conn: %s %s: %s", e.Op, e.Addr, plain(e.Err.Error()))
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// maxCause bounds what Error shows of its cause, in bytes.
const maxCause = 256

// plain is a cause's text made fit for a log: one line of bounded length. It may
// hold words of the peer, such as the names in a certificate that nobody has
// vouched for yet.
func plain(text string) string {
	if len(text) > maxCause {
		text = text[:maxCause] + "..."
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// notSent makes a cause say that no byte of a command was written.
type notSent struct{ cause error }

func (e *notSent) Error() string { return e.cause.Error() }
func (e *notSent) Unwrap() error { return e.cause }

// Is says ErrNotSent. Two errors to unwrap would be a slice to allocate, for each
// batch that a node which is down fails.
func (e *notSent) Is(target error) bool { return target == ErrNotSent }
