package redlock

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/group"
	"github.com/redlock-go/redlock/internal/token"
)

// OpKind is the kind of an operation, an [Op] or a blocking call. Its String is
// "acquire", "extend" or "release".
type OpKind uint8

// The kinds of operations.
const (
	OpAcquire OpKind = 1 + iota
	OpExtend
	OpRelease
)

func (k OpKind) String() string {
	if k > OpRelease {
		return "unknown"
	}
	return engine.Kind(k).String()
}

// Op is an operation for callers with an event loop of their own: it is submitted
// without blocking, and completed by a callback. It must not be touched from Submit to
// Done, or to a Cancel that returned true; then it can be used again.
//
// An OpExtend knows of no lock beside its token: nodes that have lost the key are not given it
// again, and its user sees to it that the validity of the lock had not ended when it is done.
type Op struct {
	Kind  OpKind
	Key   []byte           // 1 to MaxKey bytes
	TTL   time.Duration    // of OpAcquire and OpExtend
	Token [token.Size]byte // set by Submit for OpAcquire, by the caller for the others
	// Done is called once, by a goroutine of the client and without a lock: it may
	// use the client, and Submit this Op again. One runs at a time; after 20 ms the
	// others go on beside it. A panic is recovered and logged.
	Done func(*Op)

	op group.Op
}

// Submit begins op. It does not block and does not allocate. With an error (ErrBusy,
// ErrClosed, or ErrArgument for a wrong op or one under way) Done is not called. Done may be
// called before Submit returns.
func (c *Client) Submit(op *Op) error {
	if op == nil {
		return engine.WrongArgument("operation is nil")
	}
	if op.Kind > OpRelease { // those above are not for users
		return engine.WrongArgument("operation has kind %d, want 1 to %d", op.Kind, OpRelease)
	}
	in := &op.op
	if !in.Reserve() {
		return engine.ErrUnderWay // and leave it as it is
	}
	in.Kind, in.Key, in.TTL, in.Done = engine.Kind(op.Kind), op.Key, op.TTL, nil
	if op.Done != nil {
		in.Done = (*completion)(op)
	}
	return c.group.Submit(in, (*token.Token)(&op.Token))
}

// Cancel takes op back. It returns false if it is too late: Done was called or
// is about to be; or if op was not submitted to this client. An acquire that was
// sent is released in the background.
func (c *Client) Cancel(op *Op) bool { return op != nil && c.group.Cancel(&op.op) }

// Err returns what TryAcquire, Extend or Release would have. Valid from Done on.
func (op *Op) Err() error { return op.op.Result() }

// Remaining returns how much validity is left after an OpAcquire or OpExtend
// without an error, else 0. A lock of which nothing is left must be released.
func (op *Op) Remaining() time.Duration { return op.op.Remaining() }

// Fence returns the fencing token of an OpAcquire without an error, or 0: see [Lock.Fence].
func (op *Op) Fence() uint64 { return op.op.Fence() }

// String shows the kind, the key, the TTL and a short digest of the token, never the
// token itself. So do Format, LogValue and MarshalJSON: print a pointer to an Op, since
// an Op by value shows what is in it.
func (op *Op) String() string {
	if op == nil {
		return "no operation"
	}
	return fmt.Sprintf("%v %s, ttl %v, token digest %s", op.Kind, group.Quote(string(op.Key)), op.TTL, group.Digest(op.Token[:]))
}

// Format implements fmt.Formatter, for all verbs alike.
func (op *Op) Format(f fmt.State, _ rune) { fmt.Fprint(f, op.String()) }

// LogValue implements slog.LogValuer.
func (op *Op) LogValue() slog.Value { return slog.StringValue(op.String()) }

// MarshalJSON implements json.Marshaler.
func (op *Op) MarshalJSON() ([]byte, error) { return json.Marshal(op.String()) }

// completion hides Complete from the users of Op.
type completion Op

func (op *completion) Complete(*engine.Op) {
	ended := true
	defer func() {
		if ended { // also behind a hook that panics
			op.Done((*Op)(op))
		}
	}()
	ended = op.op.Report()
}
