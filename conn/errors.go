package conn

import (
	"errors"
	"fmt"
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
	// ErrNoRunID refuses a node that does not tell its run_id (INFO server),
	// where the restart guard is strict.
	ErrNoRunID = errors.New("conn: server does not tell its run_id, by which a restart is known")
	// ErrGuarded is why a node has no vote: it has restarted, and may have
	// forgotten locks that are still held.
	ErrGuarded = errors.New("conn: node has restarted and has no vote yet")
	// ErrOversized ends a connection whose reply does not fit the read buffer.
	ErrOversized = errors.New("conn: reply is too large")
)

// Error says which node a failure belongs to and what was being done.
type Error struct {
	Addr string // host and port or path, never a credential
	Op   string // "dial" (and greet), "read" or "write"
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("conn: %s %s: %v", e.Op, e.Addr, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// notSent makes a cause say that no byte of a command was written.
type notSent struct{ cause error }

func (e *notSent) Error() string { return e.cause.Error() }
func (e *notSent) Unwrap() error { return e.cause }

// Is says ErrNotSent. Two errors to unwrap would be a slice to allocate, for each
// batch that a node which is down fails.
func (e *notSent) Is(target error) bool { return target == ErrNotSent }
