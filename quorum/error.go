package quorum

import (
	"fmt"
	"strings"
)

// NodeError says why the vote of one node failed.
type NodeError struct {
	Node int    // its index
	Addr string // where it is, without credentials
	Err  error
}

// Error names the node and the cause.
func (e NodeError) Error() string { return fmt.Sprintf("node %d (%s): %v", e.Node, e.Addr, e.Err) }

// Unwrap returns the cause.
func (e NodeError) Unwrap() error { return e.Err }

// RoundError is a lost round in which too few nodes answered, with the votes up
// to the verdict.
type RoundError struct {
	Cause                  error // what the round's caller calls this
	Nodes, Granted, Denied int
	Failed                 []NodeError
}

// Error counts the votes and says of each failed node why.
func (e *RoundError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: of %d nodes %d granted, %d denied, %d failed", e.Cause, e.Nodes, e.Granted, e.Denied, len(e.Failed))
	for _, f := range e.Failed {
		b.WriteString("; ")
		b.WriteString(f.Error())
	}
	return b.String()
}

// Unwrap returns the reason and the failures, for errors.Is and errors.As.
func (e *RoundError) Unwrap() []error {
	errs := make([]error, 0, 1+len(e.Failed))
	errs = append(errs, e.Cause)
	for _, f := range e.Failed {
		errs = append(errs, f)
	}
	return errs
}
