package session

import (
	"context"
	"strings"
	"sync"

	"github.com/redlock-go/redlock/resp"
)

// Commands decides what the commands of one connection do. One goroutine at a time calls its
// methods.
type Commands interface {
	// Plan decides what a command does. It is called in the order of the commands, after all
	// earlier ones that are Alone are complete. It may write the reply, and must not block. It may
	// keep the arguments, of which there is at least one.
	Plan(args []string, r *Reply) Plan
	// IsStranger reports whether its client has yet to log in. It is called as Plan is.
	IsStranger() bool
	// Gone is called once, when the connection has ended and none of its commands runs any more.
	Gone()
}

// Push queues a message outside commands, behind the replies owed. It is dropped if the connection has as
// much under way as allowed. write writes it, or nothing, and is called as Plan is.
type Push func(write func(r *Reply))

// Plan is the planned execution of a command.
type Plan struct {
	// Run executes the command. It runs beside other commands, and must return when ctx ends: the
	// client is gone or the server stops. undo may be nil; it is called for a reply that is never
	// written. Nil: Plan has written the reply.
	Run  func(ctx context.Context, r *Reply) (undo func())
	Key  string   // commands with the same key run in their order
	More []string // further keys
	// Alone: the command runs after all commands before it are complete, and later commands begin after its end.
	Alone bool
	Waits bool // for other clients, Alone, or asks no node: it takes no room in the gate
	Close bool // the connection ends after the reply
}

// request is a command under way, from its arrival to its reply.
type request struct {
	args  []string // in bytes, with its reply once this exists
	size  int      // in bytes, with its reply once this exists
	plan  Plan
	reply Reply
	undo  func()
	done  bool

	charged *budget    // nil: none
	isOwn   bool       // the reading goroutine runs it
	next    *request   // the next of the connection
	before  int        // incomplete commands with one of its keys
	after   []*request // the next ones, of each of its keys
}

var requests = sync.Pool{New: func() any { return new(request) }}

// maxReplyKept is the largest capacity of a reply's buffer for reuse.
const maxReplyKept = 4 << 10

// free gives a request back for another command.
func (r *request) free() {
	buf := r.reply.buf
	if cap(buf) > maxReplyKept {
		buf = nil
	}
	*r = request{reply: Reply{buf: buf[:0]}}
	requests.Put(r)
}

// read reads one command from the start of buf. n is 0 if it is incomplete. Without arguments there
// is nothing to answer, as for an empty line.
func read(d *resp.Decoder, buf []byte) (args []string, n int, err error) {
	if len(buf) == 0 {
		return nil, 0, nil
	}
	if resp.Kind(buf[0]) != resp.Array {
		return readInline(buf)
	}
	var v resp.Value
	if n, err = d.Decode(buf, &v); err == resp.ErrIncomplete {
		return nil, 0, nil
	} else if err != nil {
		return nil, 0, err
	}
	if v.Null || v.Int == 0 {
		return nil, n, nil
	}
	args = make([]string, 0, v.Int)
	for it := v.Elements(); it.Next(); {
		e := it.Value()
		if e.Kind != resp.Bulk || e.Null {
			return nil, 0, errNoBulk
		}
		args = append(args, string(e.Bytes))
	}
	return args, n, nil
}

// maxInline bounds a command given as a line of words, typed by a person.
const maxInline = 1 << 10

// readInline reads a line of words.
func readInline(buf []byte) (args []string, n int, err error) {
	line, _, found := strings.Cut(string(buf[:min(len(buf), maxInline)]), "\n")
	if !found {
		if len(buf) >= maxInline {
			err = errInlineTooLong
		}
		return nil, 0, err
	}
	if strings.ContainsAny(line, `"'`) { // to Redis they are no part of a word
		return nil, 0, errInlineQuotes
	}
	return strings.Fields(line), len(line) + 1, nil
}

// protocolError is the error of bytes that are not a command. It ends the connection, since the start of the next
// command is unknown.
type protocolError string

func (e protocolError) Error() string { return "ERR Protocol error: " + string(e) }

const (
	errNoBulk        = protocolError("expected '$', got another type")
	errInlineTooLong = protocolError("too big inline request")
	errInlineQuotes  = protocolError("quotes in an inline request are not read here")
)
