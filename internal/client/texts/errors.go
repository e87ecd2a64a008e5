package texts

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/client/engine"
)

// withText is an error with a better text.
type withText struct {
	text string
	err  error
}

func (e *withText) Error() string { return e.text }
func (e *withText) Unwrap() error { return e.err }

// Because is err with a more detailed text.
func Because(err error, format string, args ...any) error {
	return &withText{fmt.Sprintf(format, args...), err}
}

// configError is an engine.ErrConfig.
type configError struct {
	text   string
	causes []error
}

func (e *configError) Error() string        { return e.text }
func (e *configError) Is(target error) bool { return target == engine.ErrConfig }
func (e *configError) Unwrap() []error      { return e.causes }

// InConfig begins the errors of a wrong Config.
const InConfig = "redlock: config: "

// WrongConfig is the error of a wrong Config: a text, followed by its causes.
func WrongConfig(text string, causes ...error) error {
	var list []string
	for _, err := range causes {
		list = append(list, nodeOnce(err))
	}
	return &configError{text + strings.Join(list, ", "), causes}
}

// nodeOnce names a node once where the error is a node's.
func nodeOnce(err error) string {
	if node, ok := err.(*conn.Error); ok {
		return node.Addr + " " + node.Reason()
	}
	return strings.TrimPrefix(err.Error(), "conn: ")
}

// EndOf is the error of an ended context, and its cause if different. It runs user code, and so only for the caller
// of this context.
func EndOf(ctx context.Context) error {
	err := ctx.Err()
	if err == nil { // its Done channel is closed all the same
		err = context.Canceled
	}
	switch cause := context.Cause(ctx); {
	case cause == nil:
		return err
	case errors.Is(cause, err): // often the same
		return cause
	default:
		return fmt.Errorf("%w: %w", err, cause)
	}
}

// notReady is the error of a wait for nodes, ended by its context.
type notReady struct{ ended, why error }

func (e *notReady) Error() string   { return fmt.Sprintf("%v; %v", e.why, e.ended) }
func (e *notReady) Unwrap() []error { return []error{e.ended, e.why} }

// NotReady is the error of a call waiting for nodes until ctx ended; why is what kept them.
func NotReady(ctx context.Context, why error) error { return &notReady{EndOf(ctx), why} }
