package conn

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/redlock-go/redlock/internal/wire/refusal"
)

var (
	// ErrClosed is the failure of all commands once the client is closed.
	ErrClosed = errors.New("conn: closed")
	// ErrNotSent marks failures before the first byte of a command was written.
	ErrNotSent = errors.New("not sent")
	// ErrDown is the failure of commands for a node whose first dial is under way. Later the error is why it is down. Both
	// wrap ErrNotSent.
	ErrDown = errors.New("conn: node is down")
	// ErrStalled ends a connection owing replies, after a silence longer than Config.StallTimeout.
	ErrStalled = errors.New("conn: node is silent")
	// ErrFull is the failure of commands for a connection owing too many replies, or replies to too many bytes, until it
	// has sent them. The connection stays.
	ErrFull = errors.New("conn: node owes too many replies")
	// ErrUnsolicited ends a connection after a reply to no command.
	ErrUnsolicited = errors.New("conn: reply to no command")
	// ErrSameServer refuses another configured node under a second address: its vote would count twice.
	ErrSameServer = errors.New("conn: same server as another node")
	// ErrNoRunID refuses a node without a run_id (INFO server), where the quarantine is strict (MaxTTL) or the client fenced.
	ErrNoRunID = errors.New("conn: server does not show its run_id, which changes with a restart")
	// ErrTooOld refuses a server with scripts, but too old to keep fencing tokens.
	ErrTooOld = errors.New("conn: server is too old for fencing, which needs Redis 5 or later")
	// ErrQuarantined is why a node has no vote: it has restarted, or may have lately, and may have forgotten locks
	// still held.
	ErrQuarantined = errors.New("conn: node has no vote yet: it may have forgotten locks")
	// ErrOversized ends a connection if a reply exceeds Config.MaxReply.
	ErrOversized = errors.New("conn: reply is too large")

	// ErrSentinel refuses a sentinel: it keeps no keys.
	ErrSentinel = errors.New("conn: node is a sentinel: name the masters that it watches, without their failover")

	// ErrNotRESP refuses a server with a first answer in another protocol.
	ErrNotRESP = errors.New("conn: answers in another protocol: not a Redis or Valkey port, or one that wants TLS (rediss://)")
	// ErrRefused is an error in answer to a command of the handshake. It does not depend on the server's state, and
	// so does not go away by itself.
	ErrRefused = errors.New("conn: server refuses a command of the handshake")
	// ErrUntrusted refuses a server by its certificate.
	ErrUntrusted = errors.New("conn: server's certificate is not trusted")
	// ErrRejected is the refusal of our TLS handshake by the server: of the client's certificate, or of having none.
	ErrRejected = errors.New("conn: server refuses the TLS handshake: it may want a client's certificate that it trusts")
	// ErrNotTLS refuses a rediss:// node answering in the clear.
	ErrNotTLS = errors.New("conn: does not speak TLS: not the server's TLS port, or redis:// is meant")

	// ErrCommand refuses bytes other than one command, as [resp.AppendCommand] writes it, and commands changing the
	// connection, or blocking it, for all callers. They were sent to no node.
	ErrCommand = errors.New("conn: not one command, an array of bulk strings, that leaves the connection to others as it is")

	// Refusals of servers; see package refusal.

	// ErrAuth is a refusal of our credentials, or of having none.
	ErrAuth = refusal.ErrAuth
	// ErrNotMaster refuses a replica of another node: the replication would overwrite its keys.
	ErrNotMaster = refusal.ErrNotMaster
	// ErrCluster refuses a node of a cluster: it redirects most keys to others.
	ErrCluster = refusal.ErrCluster
	// ErrForbidden is a command, or a key, denied to our user by the server's access list.
	ErrForbidden = refusal.ErrForbidden
	// ErrUnscripted refuses a server with neither scripts nor commands in their place.
	ErrUnscripted = refusal.ErrUnscripted
)

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

// Reason returns the text of the cause alone, for a message with the node's name.
func (e *Error) Reason() string { return plain(strings.TrimPrefix(e.Err.Error(), "conn: ")) }

// MarshalText returns the text of Error, so that a node in JSON shows why it is down.
func (e *Error) MarshalText() ([]byte, error) { return []byte(e.Error()), nil }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// maxCause bounds what Error shows of its cause, in bytes.
const maxCause = 256

// plain returns a cause's text as one line of bounded length, fit for a log. The text may hold words of the peer,
// such as the names in an untrusted certificate.
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
