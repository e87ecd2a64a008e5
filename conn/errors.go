package conn

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/redlock-go/redlock/internal/refusal"
)

var (
	// ErrClosed is the failure of every batch once the fleet is closed.
	ErrClosed = errors.New("conn: closed")
	// ErrNotSent marks failures of commands of which no byte was written.
	ErrNotSent = errors.New("not sent")
	// ErrDown is the failure of commands for a node without a connection.
	ErrDown = errors.New("conn: node is down")
	// ErrStalled ends a connection that owes replies and has been silent for
	// longer than the stall bound.
	ErrStalled = errors.New("conn: node is silent")
	// ErrFull ends a connection that owes more replies than its bound, or for
	// more bytes.
	ErrFull = errors.New("conn: node owes too many replies")
	// ErrUnsolicited ends a connection that sends more than it was asked for.
	ErrUnsolicited = errors.New("conn: reply to no command")
	// ErrSameServer refuses a node that is another configured node under a
	// second address: its vote would count twice.
	ErrSameServer = errors.New("conn: same server as another node")
	// ErrNoRunID refuses a node that does not report its run_id (INFO server),
	// where the restart guard is strict.
	ErrNoRunID = errors.New("conn: server does not tell its run_id, by which a restart is known")
	// ErrTooOld refuses a server with scripts that cannot keep fencing tokens.
	ErrTooOld = errors.New("conn: server is too old for fencing, which needs Redis 5 or later")
	// ErrQuarantined is why a node has no vote: it has restarted, or may have lately,
	// and may have forgotten locks that are still held.
	ErrQuarantined = errors.New("conn: node has no vote yet: it may have forgotten locks")
	// ErrOversized ends a connection if a reply does not fit the read buffer.
	ErrOversized = errors.New("conn: reply is too large")

	// ErrSentinel refuses a node that keeps no keys.
	ErrSentinel = errors.New("conn: node is a sentinel: name the masters that it watches, without their failover")

	// ErrNotRESP refuses a server that answers first in another protocol.
	ErrNotRESP = errors.New("conn: answers in another protocol: not a Redis or Valkey port, or one that wants TLS (rediss://)")
	// ErrRefused is an error in answer to a command of the handshake that does not depend
	// on the server's state, and so does not go away by itself.
	ErrRefused = errors.New("conn: server refuses a command of the handshake")
	// ErrUntrusted refuses a server by its certificate.
	ErrUntrusted = errors.New("conn: server's certificate is not trusted")
	// ErrNotTLS refuses a rediss:// node that answers in the clear.
	ErrNotTLS = errors.New("conn: does not speak TLS: not the server's TLS port, or redis:// is meant")

	// Refusals of servers; see package refusal.

	// ErrAuth is a refusal of our credentials, or of having none.
	ErrAuth = refusal.ErrAuth
	// ErrNotMaster refuses a node that replicates another: the replication would
	// overwrite its keys.
	ErrNotMaster = refusal.ErrNotMaster
	// ErrCluster refuses a node of a cluster, which redirects most keys to others.
	ErrCluster = refusal.ErrCluster
	// ErrForbidden is a command, or a key, that the server's access list does not
	// allow our user.
	ErrForbidden = refusal.ErrForbidden
	// ErrUnscripted refuses a server without scripts that has no commands in their place.
	ErrUnscripted = refusal.ErrUnscripted
)

// misconfigured reports whether err means that a node must not be used for
// locks, now or later, healthy or not: it is another node's second
// address, a replica, part of a cluster, or a sentinel. A client should not
// start with one.
func misconfigured(err error) bool {
	return errors.Is(err, ErrSameServer) || errors.Is(err, ErrNotMaster) ||
		errors.Is(err, ErrCluster) || errors.Is(err, ErrSentinel)
}

// permanent reports whether err is one that only a change of configuration will
// end, here or on the server: all that is misconfigured, refused credentials,
// missing permissions or scripts, commands that are not understood, certificates that are not
// trusted, and other protocols than ours. Such a node is dialed at most
// once a second.
func permanent(err error) bool {
	return misconfigured(err) || errors.Is(err, ErrAuth) || errors.Is(err, ErrForbidden) || errors.Is(err, ErrNoRunID) || errors.Is(err, ErrTooOld) ||
		errors.Is(err, ErrUnscripted) || errors.Is(err, ErrNotRESP) || errors.Is(err, ErrNotTLS) ||
		errors.Is(err, ErrRefused) || errors.Is(err, ErrUntrusted) || errors.Is(err, refusal.ErrProtected)
}

// classes is the kinds of errors that kept a node down, each to be reported once.
type classes []string

// maxClasses bounds how many are told apart.
const maxClasses = 16

// isNew notes the class of an error, and reports whether it was not known. It is one of the errors above, or
// else the innermost error, such as "connection refused".
func (c *classes) isNew(err error) bool {
	class := ""
	for _, of := range []error{
		ErrAuth, ErrForbidden, ErrUnscripted, ErrNotMaster, ErrCluster, ErrSentinel, ErrSameServer, ErrNoRunID, ErrTooOld, ErrNotRESP,
		ErrNotTLS, ErrUntrusted, refusal.ErrProtected, refusal.ErrCrowded, ErrRefused, ErrStalled, os.ErrDeadlineExceeded,
	} {
		if errors.Is(err, of) {
			class = of.Error()
			break
		}
	}
	for class == "" {
		inner := errors.Unwrap(err)
		if hidden, ok := err.(*cause); ok {
			inner = hidden.err
		}
		if inner == nil {
			class = err.Error()
		}
		err = inner
	}
	if slices.Contains(*c, class) || len(*c) == maxClasses {
		return false
	}
	*c = append(*c, class)
	return true
}

// Error is a failure of one node, with the action that failed. Its text is
// one line of at most a few hundred bytes, however long the node's answer was.
type Error struct {
	Addr string // host and port or path, never a credential
	Op   string // "dial" (and greet), "read" or "write"
	Err  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("conn: %s %s: %s", e.Op, e.Addr, e.Reason())
}

// Reason returns the text of the cause alone, for a message that names the node itself.
func (e *Error) Reason() string { return plain(strings.TrimPrefix(e.Err.Error(), "conn: ")) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// maxCause bounds what Error shows of its cause, in bytes.
const maxCause = 256

// plain returns a cause's text as one line of bounded length, fit for a log. The text may
// hold words of the peer, such as the names in a certificate that is not trusted.
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

// notSent marks a cause with ErrNotSent: no byte of a command was written.
type notSent struct{ cause error }

func (e *notSent) Error() string { return e.cause.Error() }
func (e *notSent) Unwrap() error { return e.cause }

// Is reports ErrNotSent. An Unwrap that returns two errors would allocate a slice for
// each batch that fails on a node that is down.
func (e *notSent) Is(target error) bool { return target == ErrNotSent }
