package engine

import (
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/token"
	"github.com/redlock-go/redlock/quorum"
)

// The errors of operations. The root package exports these.
var (
	ErrTaken    = errors.New("redlock: taken: another holder has the lock")
	ErrNoQuorum = errors.New("redlock: no quorum: too few nodes answered")
	ErrExpired  = errors.New("redlock: expired: no validity is left")
	ErrNotHeld  = errors.New("redlock: not held: the lock is gone or another's")
	ErrClosed   = errors.New("redlock: client is closed")
	ErrBusy     = errors.New("redlock: too many operations are waiting")
	ErrMaxHold  = errors.New("redlock: kept alive for as long as allowed (MaxHold)")
	ErrStopped  = errors.New("redlock: no longer kept alive: stopped or released")

	ErrUnderWay = WrongArgument("operation was submitted before and is not complete")
)

// The kinds of operations are those of package command.
const (
	Acquire = command.Acquire
	Extend  = command.Extend
	Release = command.Release

	ReadValue = command.ReadValue
	ReadTTL   = command.ReadTTL
)

// Kind is the kind of an operation.
type Kind = command.Kind

// Completion is told when an operation is complete.
type Completion interface {
	// Complete is called once, by the goroutine of callbacks and without a lock, unless
	// Op.Prompt is set. The operation belongs to its caller again.
	Complete(op *Op)
}

// SetKey makes key the operation's. It is read where it is.
func (op *Op) SetKey(key string) { op.Key = unsafe.Slice(unsafe.StringData(key), len(key)) }

// Failure says why one node's vote was "failed".
type Failure struct {
	Node int
	Err  error
}

// IsTimeout says whether the node did not answer within Op.Timeout.
func (f Failure) IsTimeout() bool { return f.Err == errTimeout }

// Told is a node's answer to a fenced acquire, other than OK.
type Told struct {
	Node int
	fencing.Answer
}

// Op is one operation on all nodes. It belongs to the engine from Submit to
// Complete, or to a Cancel that returned true, and can be used again then.
type Op struct {
	Kind    Kind
	Prompt  bool   // the driver itself calls Done, under its lock: it must not block or use the engine
	Part    bool   // it is one key of a lock of several: its caller counts the whole, by Note
	Key     []byte // not written to by the engine, and not read after Complete
	Token   token.Token
	TTL     time.Duration
	Timeout time.Duration // how long the nodes have to answer once asked; set by Submit
	Done    Completion
	Tail    string        // follows the token in the value at the key
	Block   fencing.Block // that an acquire proposes, where acquires are fenced

	// Absent is the nodes, a bit each, that have no key with this token: they
	// denied the acquire, or were never sent it. The engine sets it for an
	// acquire. A release with it leaves no hints for these nodes. Zero is always
	// correct.
	Absent uint64

	// Before is when the validity ends that an extend is about; one that has won later is
	// ErrExpired. The nodes may have been without the key since, and another client may have
	// held the lock: a copy of the key that was late on its way, and the extend behind it, must
	// not bring the lock back. Zero: its user looks after that.
	Before time.Duration

	// Repairer is asked, where an extend has won, whether nodes that lack the key may be
	// given it again; it may be nil. Life is which of its lives is meant.
	Repairer Repairer
	Life     uint64

	// The result, valid from Complete on.
	Err      error
	Tally    quorum.Tally
	Until    time.Duration // when validity ends if the nodes did as asked, on the engine's clock
	Failures []Failure     // one for each failed vote; reused by the next Submit
	Told     []Told        // what nodes answered a fenced acquire that has not won; likewise

	start time.Duration // before anything was queued
	state atomic.Uint64 // generation and phase
	batch *batch        // while decided and not yet judged
	round int
	next  *Op
	prev  *Op
}

// The life of an operation. A generation number above the phase tells one use
// of an Op from the next: a batch may refer to an Op long after its caller
// has gone, and must not decide a later use of it.
//
//	idle → reserved → queued → sending → inFlight → decided → idle
//
// idle → reserved is a compare-and-swap, before any field is written: it refuses an
// Op that is under way. reserved → queued → sending happens under the queue's lock,
// and so do the way back to idle of a cancelled queued Op, and the one to queued of
// an Op that is deferred. sending belongs to the driver alone. From inFlight, the
// driver that decides (to decided) and the caller that cancels (to idle) race with a
// compare-and-swap; the loser leaves the Op alone. A decided Op becomes idle right
// before its Done is called.
const (
	idle = iota
	reserved
	queued
	sending
	inFlight
	decided

	phaseBits = 3
	phaseMask = 1<<phaseBits - 1
)

// Reserve begins a new generation for Submit. It returns false, and changes nothing,
// if the Op is under way: only an Op that was reserved, or that has never been
// submitted, may be written to.
func (op *Op) Reserve() bool {
	s := op.state.Load()
	return s&phaseMask == idle && op.state.CompareAndSwap(s, (s>>phaseBits+1)<<phaseBits|reserved)
}

// Unreserve takes Reserve back, for an Op that is not submitted after all.
func (op *Op) Unreserve() { op.advance(idle) }

func (op *Op) isReserved() bool { return op.state.Load()&phaseMask == reserved }

// begin clears the result. A Cancel that comes before the Op is pushed finds nothing
// to take out of the queue.
func (op *Op) begin(now time.Duration) {
	op.start = now
	op.Err, op.Until = nil, quorum.Until(now, op.TTL)
	op.Failures = op.Failures[:0]
	op.Told = op.Told[:0]
	op.Tally = quorum.Tally{}
}

// advance moves to a phase for which there is no race.
func (op *Op) advance(phase uint64) uint64 {
	s := op.state.Load()&^phaseMask | phase
	op.state.Store(s)
	return s
}

// claim takes the Op out of inFlight, if s is still its life.
func (op *Op) claim(s, phase uint64) bool {
	return op.state.CompareAndSwap(s, s&^phaseMask|phase)
}

// Limits of keys and TTLs. The root package exports these.
const (
	MaxKey = 4 << 10               // bytes
	MinTTL = 10 * time.Millisecond // of which 2.1 ms are drift
	MaxTTL = 365 * 24 * time.Hour
)

// maxTimeout is the default of how long nodes have to answer, unless a
// twentieth of the TTL is less. The algorithm's text asks for "~ 5-50
// milliseconds" with a TTL of 10 s.
const maxTimeout = 50 * time.Millisecond

// check refuses wrong arguments, rounds the TTL down to whole milliseconds
// and sets the timeout. It runs once for each operation: Submit begins with it, and
// so does Call.
func (e *Engine) check(op *Op) error {
	switch {
	case !op.Kind.IsValid():
		return WrongArgument("operation has kind %d, want 1 to %d", op.Kind, Release)
	case op.Done == nil:
		return WrongArgument("operation has no Done")
	case len(op.Key) == 0:
		return WrongArgument("key is empty, 1 to %d bytes are allowed", MaxKey)
	case len(op.Key) > MaxKey:
		return WrongArgument("key has %d bytes, at most %d are allowed", len(op.Key), MaxKey)
	case e.fence != nil && string(op.Key) == e.fence.Set:
		return WrongArgument("key is that of the fencing tokens (FenceSet)")
	}
	op.Timeout = e.timeout
	if !op.Kind.HasTTL() {
		op.TTL = 0
		if op.Timeout == 0 {
			op.Timeout = maxTimeout
		}
		return nil
	}
	given := op.TTL
	op.TTL = given.Truncate(time.Millisecond)
	if op.TTL < MinTTL || op.TTL > e.maxTTL {
		return e.wrongTTL(given)
	}
	if op.Timeout == 0 {
		op.Timeout = min(op.TTL/20, maxTimeout)
	}
	return nil
}
