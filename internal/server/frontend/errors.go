package frontend

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/server/grants"
	"github.com/redlock-go/redlock/internal/server/luascript"
	"github.com/redlock-go/redlock/internal/server/session"
)

// refusal is an error shown to the client as it is, after the code ERR.
type refusal string

func (e refusal) Error() string { return string(e) }

const (
	errSyntax     = refusal("syntax error")
	errNotInteger = refusal("value is not an integer or out of range")
	errStopping   = refusal("the connection ends: its client is gone, or the server stops")
)

// integer reads a number as servers do: +7 and 007 are none.
func integer(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(n, 10) != text {
		return 0, errNotInteger
	}
	return n, nil
}

// fail answers an error. The client of a single Redis knows two kinds: its request is wrong, or the
// server cannot do it now.
func (c *conn) fail(r *session.Reply, key string, err error) {
	r.Reset()
	refused := (*luascript.Refusal)(nil)
	switch own := refusal(""); {
	case errors.As(err, &own):
		r.Error("ERR " + string(own))
	case errors.As(err, &refused):
		r.Error("ERR " + refused.Error() + "; see internal/server/frontend/CLIENTS.md of redlock")
	case grants.IsRefusal(err):
		r.Error("ERR lock " + strconv.Quote(key) + ": " + text(err))
	case errors.Is(err, redlock.ErrArgument):
		r.Error("ERR " + text(err))
	case errors.Is(err, context.Canceled), errors.Is(err, redlock.ErrClosed):
		r.Error("ERR " + string(errStopping))
	default:
		c.server.stats.NoQuorum.Add(1)
		r.Error("NOQUORUM " + text(err))
	}
}

// settings are the names of the library's settings, and those of the server's.
var settings = strings.NewReplacer("(NodeTimeout)", "(-node-timeout)", "MaxTTL", "-max-ttl", "(Config.Fenced)", "(-fenced)", "Config.", "")

// text is the library's text without its name: its readers know the command alone.
func text(err error) string { return settings.Replace(strings.TrimPrefix(err.Error(), "redlock: ")) }
