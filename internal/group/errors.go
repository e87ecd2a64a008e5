package group

import (
	"errors"
	"strings"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/engine"
)

// ErrConfig is what every error of a wrong Config is. The root package exports it.
var ErrConfig = errors.New("redlock: wrong config")

// sentinels are the results that callers tell apart, and that no node's failure may
// be taken for.
var sentinels = []error{
	engine.ErrTaken, engine.ErrNoQuorum, engine.ErrExpired, engine.ErrNotHeld, engine.ErrClosed, engine.ErrBusy,
	engine.ErrMaxHold, engine.ErrStopped, engine.ErrArgument, ErrConfig,
}

// configError says what is wrong with a Config.
type configError struct {
	text   string
	causes []error
}

func wrongConfig(causes ...error) error {
	e := &configError{text: "redlock: config: ", causes: causes}
	if len(causes) > 1 {
		e.text += "no node can be used: "
	}
	for i, err := range causes {
		if i > 0 {
			e.text += ", "
		}
		e.text += textOf(err)
	}
	return e
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
// be, for a reason which does not mend by itself; or nil.
func misconfigured(nodes []conn.Node) error {
	var refusing []error
	for _, n := range nodes {
		if conn.Misconfigured(n.Err) {
			return wrongConfig(n.Err)
		}
		if conn.Permanent(n.Err) {
			refusing = append(refusing, n.Err)
		}
	}
	if len(refusing) < len(nodes) {
		return nil
	}
	return wrongConfig(refusing...)
}
