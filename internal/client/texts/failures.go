package texts

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/wire/refusal"
)

// GaveUp is the text of an acquire given up after so many attempts. last is the error of the last attempt, or
// nil. ended is the error of the context, if the context has ended the acquire.
func GaveUp(key string, attempts int, waited time.Duration, last, ended error) string {
	tried := fmt.Sprintf("after %d attempts", attempts)
	switch attempts {
	case 0:
		tried = "without an attempt of its own"
	case 1:
		tried = "after 1 attempt"
	}
	took := waited.Round(time.Millisecond).String()
	if waited >= time.Second {
		took = fmt.Sprintf("%.1fs", waited.Seconds())
	}
	why := "no answer yet"
	if last != nil {
		why = strings.TrimPrefix(last.Error(), "redlock: ")
	}
	end := "its limit (Attempts or Wait) is reached"
	if ended != nil {
		end = ended.Error()
	}
	return fmt.Sprintf("redlock: gave up on %s %s in %s: %s; %s", Quote(key), tried, took, why, end)
}

// Lost is the text of a lock lost while its holder worked.
func Lost(key string, cause error) string {
	return fmt.Sprintf("redlock: lost the lock on %s: %s", Quote(key), strings.TrimPrefix(cause.Error(), "redlock: "))
}

// NoQuorum is the text of an operation without a quorum of nodes. While the nodes change, now and next are whether
// the quorum is lacking in Config.Nodes and in Config.NextNodes.
func NoQuorum[E error](nodes, denied int, failed []E, now, next, release bool) string {
	var text strings.Builder
	text.WriteString("redlock: no quorum")
	switch {
	case now && next:
		text.WriteString(" of Nodes and none of NextNodes")
	case now:
		text.WriteString(" of Nodes")
	case next:
		text.WriteString(" of NextNodes")
	}
	fmt.Fprintf(&text, " (%d of %d nodes failed", len(failed), nodes)
	separator := ": "
	for _, f := range failed {
		text.WriteString(separator)
		text.WriteString(f.Error())
		separator = ", "
	}
	if denied > 0 {
		fmt.Fprintf(&text, "; %d denied it", denied)
	}
	text.WriteByte(')')
	if release {
		text.WriteString("; the lock may be released nevertheless: then another Release returns ErrNotHeld")
	}
	return text.String()
}

// NodeFailure is the text of a failure of one node. It names the node once.
func NodeFailure(addr string, err error) string {
	var of *conn.Error
	if errors.As(err, &of) && of.Addr == addr {
		return addr + " " + of.Reason()
	}
	if reply, ok := err.(*refusal.ServerError); ok {
		return addr + " " + reply.Message
	}
	return addr + " " + strings.TrimPrefix(err.Error(), "conn: ")
}

// NotNil returns all without nil.
func NotNil(all ...error) []error {
	return slices.DeleteFunc(all, func(err error) bool { return err == nil })
}

// Causes returns the errors wrapped by an operation without a quorum.
func Causes[E error](cause error, failed []E) []error {
	all := []error{cause}
	for _, f := range failed {
		all = append(all, f)
	}
	return all
}
