package redlock

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/group"
	"github.com/redlock-go/redlock/resp"
)

// The results of an operation, for errors.Is. No error is two of them, but that of an
// Acquire which gave up: see [AcquireError]. Other calls return a context's error as it is.
var (
	ErrTaken = engine.ErrTaken // enough nodes answered: another holder has it
	// Too few nodes answered. After an Extend the lock is still held for what
	// Remaining says; after a Release its key may be left.
	ErrNoQuorum = engine.ErrNoQuorum
	ErrExpired  = engine.ErrExpired // no validity was left when the votes came, or to extend
	ErrNotHeld  = engine.ErrNotHeld // released, expired on the nodes, or another holder's; see Lock.Release
	ErrClosed   = engine.ErrClosed  // the client is closed
	ErrBusy     = engine.ErrBusy    // Config.MaxWaiting operations wait already
	ErrMaxHold  = engine.ErrMaxHold // Config.MaxHold has passed; see Lock.KeepAlive
	ErrStopped  = engine.ErrStopped // no longer kept alive, as asked; see Lock.KeepAlive

	// Of fenced acquires, which do not try again after them.
	ErrForgotten = group.ErrForgotten // too many nodes have lost the tokens: see Client.InitFencing
	ErrFleet     = group.ErrFleet     // nodes have the tokens of clients with another configuration
	ErrClock     = group.ErrClock     // Config.FenceClock reads what no clock can that is right

	// What a change of the program or of its configuration mends.
	ErrConfig   = group.ErrConfig    // New: the Config is wrong, or every node refuses it
	ErrArgument = engine.ErrArgument // a key, ttl, function or Op that is not allowed
)

// AcquireError is what Acquire, AcquireAll and Do return when their context ends or has ended, or the
// attempts that Retry allows are used up, for errors.As. It wraps Ctx and Last: errors.Is
// finds both context.DeadlineExceeded and ErrTaken, for example. Of attempts that were used
// up it finds no context's error.
type AcquireError struct {
	Key      string // the first of several
	Attempts int
	Waited   time.Duration // in all
	// Last is how the last attempt ended that was not cut off: ErrTaken, a *QuorumError,
	// ErrExpired or ErrBusy; nil if none has ended.
	Last error
	// Ctx is the context's error, which wraps its cause if that is another; nil if
	// Retry.Attempts were used up.
	Ctx error
}

// Error says it in one line.
func (e *AcquireError) Error() string {
	attempts := "attempts"
	if e.Attempts == 1 {
		attempts = "attempt"
	}
	waited := e.Waited.Round(time.Millisecond).String()
	if e.Waited >= time.Second {
		waited = fmt.Sprintf("%.1fs", e.Waited.Seconds())
	}
	why := "no answer yet"
	if e.Last != nil {
		why = strings.TrimPrefix(e.Last.Error(), "redlock: ")
	}
	end := "Retry.Attempts allows no more"
	if e.Ctx != nil {
		end = e.Ctx.Error()
	}
	return fmt.Sprintf("redlock: gave up on %s after %d %s in %s: %s; %s", group.Quote(e.Key), e.Attempts, attempts, waited, why, end)
}

// Unwrap returns those of Ctx and Last that are not nil.
func (e *AcquireError) Unwrap() (errs []error) {
	for _, err := range []error{e.Ctx, e.Last} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func newAcquireError(key string, attempts int, waited time.Duration, last, ended error) error {
	return &AcquireError{key, attempts, waited, last, ended}
}

// QuorumError is an ErrNoQuorum with the votes up to the verdict, for errors.As.
// It wraps Cause and each NodeError of Failed. A failure of a node is never found as
// the error of a context, or as another of the errors above.
type QuorumError struct {
	Kind                   OpKind // 0: of Ready or Attach
	Cause                  error  // ErrNoQuorum
	Nodes, Granted, Denied int    // numbers of nodes
	Failed                 []NodeError
}

// Error says how many nodes failed, and which, and why.
func (e *QuorumError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "redlock: no quorum (%d of %d nodes failed", len(e.Failed), e.Nodes)
	separator := ": "
	for _, f := range e.Failed {
		text.WriteString(separator)
		text.WriteString(f.Error())
		separator = ", "
	}
	text.WriteByte(')')
	if e.Kind == OpRelease {
		text.WriteString("; it may be released all the same: ErrNotHeld from another Release means done")
	}
	return text.String()
}

// Unwrap returns Cause and Failed, for errors.Is and errors.As.
func (e *QuorumError) Unwrap() []error {
	errs := []error{e.Cause}
	for _, f := range e.Failed {
		errs = append(errs, f)
	}
	return errs
}

// NodeError says which node failed, and why.
type NodeError struct {
	Node int    // its index in Config.Nodes
	Addr string // without credentials
	Err  error
}

// Error names the node, once, and the cause.
func (e NodeError) Error() string {
	var of *conn.Error
	if errors.As(e.Err, &of) && of.Addr == e.Addr {
		return e.Addr + " " + of.Reason()
	}
	if reply, ok := e.Err.(*resp.ServerError); ok {
		return e.Addr + " " + reply.Message
	}
	return e.Addr + " " + strings.TrimPrefix(e.Err.Error(), "conn: ")
}

// Unwrap returns Err.
func (e NodeError) Unwrap() error { return e.Err }

func newQuorumError(g *group.Group, op *engine.Op) error {
	e := &QuorumError{Kind: OpKind(op.Kind), Cause: op.Err, Nodes: g.Len(), Granted: op.Tally.Granted(), Denied: op.Tally.Denied()}
	for _, f := range g.Failures(op) {
		e.Failed = append(e.Failed, NodeError{f.Node, g.Addr(f.Node), f.Err})
	}
	return e
}
