package engine

import (
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

// The kinds of operations are those of package command.
const (
	Acquire = command.Acquire
	Extend  = command.Extend
	Release = command.Release

	Look = command.Look
)

// Kind is the kind of an operation.
type Kind = command.Kind

// Completion is notified when an operation is complete.
type Completion interface {
	// Complete is called once, as Op.Ends says. The operation belongs to its caller again.
	Complete(op *Op)
}

// Ends is how an operation ends: by whom its Done is called, and what it counts as.
type Ends uint8

const (
	CallsBack Ends = iota // the goroutine of callbacks, without a lock
	Prompt                // the driver, under its lock: it must not block or use the engine
	wakes                 // the driver: a caller waits

	// Of releases without a caller, which the driver takes back:
	frees    // by the holder of a lock: it counts as one
	cleansUp // after an acquire lost, late or cancelled
)

// isAwaited reports whether a user or caller waits for the end.
func (e Ends) isAwaited() bool { return e < frees }

// SetKey makes key the operation's. It is read where it is.
func (op *Op) SetKey(key string) { op.Key = unsafe.Slice(unsafe.StringData(key), len(key)) }

// KeyText is the operation's key, to be read and not kept: its user may change the bytes later.
func (op *Op) KeyText() string { return unsafe.String(unsafe.SliceData(op.Key), len(op.Key)) }

// Failure is the reason why one node's vote was "failed".
type Failure struct {
	Node int
	Err  error
}

// IsTimeout reports whether the node did not answer within Op.Timeout.
func (f Failure) IsTimeout() bool { return f.Err == errTimeout }

// Answer is that of a node to a fenced acquire, other than OK.
type Answer struct {
	Node int
	fencing.Answer
}

// Op is one operation on all nodes. It belongs to the engine from Submit to Complete, or to a successful Cancel, and
// can be used again then.
type Op struct {
	Kind    Kind
	Ends    Ends
	Shared  bool   // it is about a shared lock
	OfSet   bool   // it is one key of a lock of several: its caller counts the whole, by Note
	Key     []byte // not written to by the engine, and not read after Complete
	Token   token.Token
	TTL     time.Duration
	OfTerm  bool          // its TTL covers a term, the same for all callers of the key, beyond the TTLs of other keys
	Timeout time.Duration // how long the nodes have to answer once asked; set by Submit
	Done    Completion
	Tail    string        // follows the token in the value at the key, or is the whole value if Token is zero
	Block   fencing.Block // proposed by a fenced acquire

	// Absent holds the nodes without a key of this token: they denied the acquire, or were never sent it. The engine
	// sets it for an acquire. A release with it leaves no hints for these nodes. Zero is always correct.
	Absent quorum.Set

	// Stay is for how long a released key stays at the nodes, and then ends there by itself; 0: it is deleted.
	Stay time.Duration

	// Denied, if not nil, is set once a node has denied an acquire: perhaps long after its result.
	Denied *atomic.Bool

	// Before is when the validity ends that an extend is about; a later win is ErrExpired. The nodes may have been
	// without the key since, and another client may have held the lock: a late copy of the key, and the extend after
	// it, must not bring the lock back. Zero: its user looks after this.
	Before clock.Instant

	// Repairer is asked, where an extend has won, whether nodes without the key may be given it again; it may be nil.
	// Life says which of its lives is meant.
	Repairer Repairer
	Life     uint64

	// Serial is the operation's number, given when it is queued. The acquires of a key are
	// sent in the order of their numbers. So of two that were both granted the key, the younger one has it: the
	// older one had lost it before, or it would have denied the younger.
	Serial uint64

	// The result, valid from Complete on.
	Err      error
	Tally    quorum.Tally
	Until    clock.Instant // when validity ends if the nodes did as asked, on the engine's clock
	SentAt   clock.Instant // when it was sent: no node had it before
	Trip     time.Duration // from then to the verdict
	Failures []Failure     // one for each failed vote; reused by the next Submit
	Answers  []Answer      // of a fenced acquire; likewise
	Gated    quorum.Set    // nodes that denied a shared acquire by a gate alone: an exclusive caller waits there for its holders

	limit Limit         // of the caller of a call
	start clock.Instant // before anything was queued
	state atomic.Uint64 // generation and phase
	next  *Op
	prev  *Op
}

// The life of an operation. A generation number above the phase distinguishes one use
// of an Op from the next: a batch may refer to an Op long after its caller
// has gone, and must not decide a later use of it.
//
//	idle → reserved → queued → sending → inFlight → decided → idle
//
// idle → reserved is a compare-and-swap, before any field is written: it refuses an Op under way. reserved → queued →
// sending happens under the queue's lock, and so do the way back to idle of a cancelled queued Op, and the way to
// queued of a deferred Op. sending belongs to the driver alone. From inFlight, the deciding driver (to decided) and
// the cancelling caller (to idle) race with a compare-and-swap; the loser leaves the Op alone. A decided Op becomes
// idle right before its Done is called.
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

// Reserve begins a new generation for Submit. It returns false, and changes nothing, if the Op is under way: only a
// reserved Op, or one never submitted, may be written to.
func (op *Op) Reserve() bool {
	s := op.state.Load()
	return s&phaseMask == idle && op.state.CompareAndSwap(s, (s>>phaseBits+1)<<phaseBits|reserved)
}

// Unreserve undoes Reserve, for an Op not submitted after all.
func (op *Op) Unreserve() { op.advance(idle) }

// begin clears the result. A Cancel before the Op is pushed finds nothing to take out of the queue.
func (op *Op) begin(now clock.Instant) {
	op.start = now
	op.Err, op.Until = nil, clock.Instant(quorum.Until(time.Duration(now), op.TTL))
	op.Failures = op.Failures[:0]
	op.Answers = op.Answers[:0]
	op.Tally, op.Trip, op.Gated = quorum.Tally{}, 0, 0
}

// advance moves to a phase without a race.
func (op *Op) advance(phase uint64) uint64 {
	s := op.state.Load()&^phaseMask | phase
	op.state.Store(s)
	return s
}

// claim takes the Op out of inFlight, if s is still its life.
func (op *Op) claim(s, phase uint64) bool {
	return op.state.CompareAndSwap(s, s&^phaseMask|phase)
}

// awaitSent waits out the moment in which the driver encodes op, and returns
// the state after it.
func (op *Op) awaitSent() uint64 {
	for {
		if s := op.state.Load(); s&phaseMask != sending {
			return s
		}
		runtime.Gosched()
	}
}

// Took is the time from the submission of an operation to an instant.
func (op *Op) Took(now clock.Instant) time.Duration { return now.Sub(op.start) }

// Began is when the operation was submitted last.
func (op *Op) Began() clock.Instant { return op.start }

// operand is the operand of an operation's commands. A value without a token is all in Tail.
func (op *Op) operand() command.Operand {
	value := op.Token[:]
	if op.Token == (token.Token{}) {
		value = nil
	}
	ttl := op.TTL
	if op.Kind == Release {
		ttl = op.Stay
	}
	return command.Operand{Key: op.Key, Token: value, TTL: int64(ttl / time.Millisecond), Tail: op.Tail, Shared: op.Shared, Block: op.Block}
}

// list is a chain of operations, linked in place: an Op is in one at most.
type list struct {
	first, last *Op
	n           int
}

// push adds op at the end.
func (l *list) push(op *Op) { l.insert(l.last, op) }

// insert adds op after another of the list, or before all for nil.
func (l *list) insert(after, op *Op) {
	op.prev, op.next = after, l.first
	if after == nil {
		l.first = op
	} else {
		op.next, after.next = after.next, op
	}
	if op.next == nil {
		l.last = op
	} else {
		op.next.prev = op
	}
	l.n++
}

// append adds other, which is not empty, at the end.
func (l *list) append(other list) {
	if l.first == nil {
		*l = other
		return
	}
	l.last.next, other.first.prev, l.last = other.first, l.last, other.last
	l.n += other.n
}

// remove takes op out.
func (l *list) remove(op *Op) {
	if op.prev == nil {
		l.first = op.next
	} else {
		op.prev.next = op.next
	}
	if op.next == nil {
		l.last = op.prev
	} else {
		op.next.prev = op.prev
	}
	op.next, op.prev = nil, nil
	l.n--
}

// pop takes the first one out, or returns nil.
func (l *list) pop() *Op {
	op := l.first
	if op != nil {
		l.remove(op)
	}
	return op
}
