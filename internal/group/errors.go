package group

import (
	"errors"
	"strings"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fence"
)

// Errors that the root package exports.
var (
	ErrConfig    = engine.ErrConfig
	ErrForgotten = fence.ErrForgotten
)

// sentinels are the results that callers distinguish, and that no node's failure may
// be taken for.
var sentinels = []error{
	engine.ErrTaken, engine.ErrNoQuorum, engine.ErrExpired, engine.ErrNotHeld, engine.ErrClosed, engine.ErrBusy,
	engine.ErrStopped, engine.ErrArgument, ErrConfig, fence.ErrForgotten,
}

// configError is the error of a wrong Config.
type configError struct {
	text   string
	causes []error
}

func wrongConfig(causes ...error) *configError {
	e := &configError{text: "redlock: config: ", causes: causes}
	if len(causes) > 1 {
		e.text += "no node can be used: "
	}
	e.text += e.list()
	return e
}

func (e *configError) list() string {
	var texts []string
	for _, err := range e.causes {
		texts = append(texts, textOf(err))
	}
	return strings.Join(texts, ", ")
}

func (e *configError) Error() string        { return e.text }
func (e *configError) Is(target error) bool { return target == ErrConfig }
func (e *configError) Unwrap() []error      { return e.causes }

// textOf names a node once where the error is a node's.
func textOf(err error) string {
	if node, ok := err.(*conn.Error); ok {
		return node.Addr + " " + node.Reason()
	}
	return strings.TrimPrefix(err.Error(), "conn: ")
}

// misconfigured returns the error of nodes that must not be used, or that all refuse to
// be, for a reason which does not mend by itself; or nil. Where acquires are fenced, one
// node is enough that cannot take part in it: it would have no vote for good.
func misconfigured(nodes []conn.Node, fenced bool) error {
	var refusing, unfenced []error
	for _, n := range nodes {
		if conn.Misconfigured(n.Err) {
			return wrongConfig(n.Err)
		}
		if conn.Permanent(n.Err) {
			refusing = append(refusing, n.Err)
		}
		if fenced && (errors.Is(n.Err, conn.ErrUnscripted) || errors.Is(n.Err, conn.ErrForbidden) || errors.Is(n.Err, conn.ErrNoRunID) || errors.Is(n.Err, conn.ErrTooOld)) {
			unfenced = append(unfenced, n.Err)
		}
	}
	switch {
	case len(refusing) == len(nodes):
		return wrongConfig(refusing...)
	case len(unfenced) > 0:
		e := wrongConfig(unfenced...)
		e.text = "redlock: config: nodes cannot take part in fencing: " + e.list()
		return e
	}
	return nil
}
