package frontend

import (
	"context"
	"errors"
	"regexp"
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

// words maps the names of the library to the names of the server and its operator.
var words = strings.NewReplacer("(NodeTimeout)", "(-node-timeout)", "(DialTimeout)", "", "MaxTTL", "-max-ttl", "NextNodes", "-next-nodes", " of Nodes", " of -nodes",
	"(Config.Fenced)", "(-fenced)", "Config.", "", "InitFencing", "redlock fence init", "RecoverFencing", "redlock fence recover", "ChangeFencing", "redlock fence change",
	"another Release returns ErrNotHeld", "another release finds no lock")

// running matches the times in a text that change every second. A text that stays the same can be counted, and searched
// for.
var running = regexp.MustCompile(`(?:, )?up for [0-9.hmsµn]+(?:, )?|: its quarantine ends in [0-9.hmsµn]+| for [0-9.hmsµn]+$| for [0-9.hmsµn]+([,;)])`)

// text returns the library's text without its name and without running times: its readers know only the command.
func text(err error) string {
	return words.Replace(running.ReplaceAllString(strings.TrimPrefix(err.Error(), "redlock: "), "$1"))
}
