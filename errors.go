package redlock

import (
	"fmt"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/group"
)

// The results of an operation, for errors.Is. A context's error is returned as it is.
var (
	ErrTaken = engine.ErrTaken // enough nodes answered: another holder has it
	// Too few nodes answered. After an Extend the lock is still held for what
	// Remaining says; after a Release its key may be left.
	ErrNoQuorum = engine.ErrNoQuorum
	ErrExpired  = engine.ErrExpired // no validity was left when the votes came, or to extend
	ErrNotHeld  = engine.ErrNotHeld // released, expired on the nodes, or another holder's
	ErrClosed   = engine.ErrClosed  // the client is closed
	ErrBusy     = engine.ErrBusy    // Config.MaxWaiting operations wait already
	ErrMaxHold  = engine.ErrMaxHold // Config.MaxHold has passed; see Lock.KeepAlive
	ErrStopped  = engine.ErrStopped // no longer kept alive, as asked; see Lock.KeepAlive
)

// QuorumError is an ErrNoQuorum with the votes up to the verdict, for errors.As.
// It wraps Cause and each NodeError of Failed.
type QuorumError struct {
	Cause                  error // ErrNoQuorum
	Nodes, Granted, Denied int   // numbers of nodes
	Failed                 []NodeError
}

// Error counts the votes and says for each failed one why.
func (e *QuorumError) Error() string {
	text := fmt.Sprintf("%v: of %d nodes %d granted, %d denied, %d failed", e.Cause, e.Nodes, e.Granted, e.Denied, len(e.Failed))
	for _, f := range e.Failed {
		text += "; " + f.Error()
	}
	return text
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

// Error names the node and the cause.
func (e NodeError) Error() string { return fmt.Sprintf("node %d (%s): %v", e.Node, e.Addr, e.Err) }

// Unwrap returns Err.
func (e NodeError) Unwrap() error { return e.Err }

func newQuorumError(g *group.Group, op *engine.Op) error {
	e := &QuorumError{Cause: op.Err, Nodes: g.Len(), Granted: op.Tally.Granted(), Denied: op.Tally.Denied()}
	for _, f := range op.Failures {
		e.Failed = append(e.Failed, NodeError{f.Node, g.Addr(f.Node), f.Err})
	}
	return e
}
