package redlock

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/group"
	"github.com/redlock-go/redlock/quorum"
)

// Hooks are functions to be called, each optional. Several goroutines may call them
// at once, and they may use the client, Stats, Nodes and Close included.
//
// Attempt, Acquire and LockLost are called by the goroutine that called the client, before its
// call returns; a panic goes to that caller. The others are called a moment later by a
// goroutine of the client, as Op.Done is, and so are Attempt and LockLost for an [Op] and
// for renewals in the background: one that blocks delays the others by 20 ms at most. A
// panic there is recovered and logged.
type Hooks struct {
	// Attempt is called for each attempt that Stats counts: once for a lock of several keys,
	// with the votes on the key that has decided it. An Op's Key is allocated.
	Attempt func(Attempt)
	// Acquire is called once for each Acquire, AcquireAll and Do that made an attempt to
	// acquire, when that has ended.
	Acquire func(Acquisition)
	// Vote is called for each vote of each node, also on releases in the background.
	// While it blocks, 65,536 votes are kept; those beyond are dropped.
	Vote func(Vote)
	// NodeUp is called when a connection came up, NodeDown when one ended, or New
	// could not make it. Close does not call NodeDown.
	NodeUp, NodeDown func(Node)
	NodeGuarded      func(Node) // is called for a node that must not vote for Node.Guarded
	// LockLost is called once for a lock that was gone before it was released:
	// Extend or Release found it so (ErrNotHeld), or Extend came after its end
	// (ErrExpired). It is not called for an Op.
	LockLost func(key string, err error)
}

// Attempt is an attempt that is over, with the votes up to its verdict. There are
// none if it was given up, or ended before a node was asked.
type Attempt struct {
	Kind                    OpKind
	Key                     string        // the first of several
	Duration                time.Duration // from before it was queued
	Granted, Denied, Failed int           // nodes
	// Err is what TryAcquire, Extend or Release returns; nil is won.
	Err error
	Ctx context.Context // of the caller; nil of an Op, and of a renewal in the background
}

// Acquisition is an Acquire that is over.
type Acquisition struct {
	Key      string // the first of several
	Attempts int
	Waited   time.Duration // in all, the attempts included
	// HandedOver says that the lock came from its last holder, inside the process.
	HandedOver bool
	Err        error // what Acquire returns; nil: the lock was acquired
	Ctx        context.Context
}

// Vote is the vote of one node on one operation.
type Vote struct {
	Kind    OpKind
	Node    int    // its index
	Addr    string // without credentials
	Outcome Outcome
	Err     error // why it failed; nil for the other outcomes
}

// Outcome is how a node voted. Its String is "granted", "denied" or "failed".
type Outcome uint8

// The outcomes of a vote.
const (
	Granted Outcome = 1 + iota // the node did as asked
	Denied                     // the key is another holder's, or gone
	Failed                     // no usable answer: the node may have done it, or not
)

func (o Outcome) String() string { return quorum.Outcome(o).String() }

// install has a group call h, with the types of this package.
func (h Hooks) install(in *group.Config) {
	if f := h.Attempt; f != nil {
		in.OnAttempt = func(ctx context.Context, kind engine.Kind, key string, took time.Duration, t quorum.Tally, err error) {
			f(Attempt{OpKind(kind), key, took, t.Granted(), t.Denied(), t.Failed(), err, ctx})
		}
	}
	if f := h.Acquire; f != nil {
		in.OnAcquire = func(ctx context.Context, key string, attempts int, waited time.Duration, handedOver bool, err error) {
			f(Acquisition{key, attempts, waited, handedOver, err, ctx})
		}
	}
	if f := h.Vote; f != nil {
		in.OnVote = func(kind engine.Kind, node int, addr string, o quorum.Outcome, err error) {
			f(Vote{OpKind(kind), node, addr, Outcome(o), err})
		}
	}
	node := func(f func(Node)) func(conn.Node) {
		if f == nil {
			return nil
		}
		return func(n conn.Node) { f(newNode(n)) }
	}
	in.OnNodeUp, in.OnNodeDown, in.OnNodeGuarded = node(h.NodeUp), node(h.NodeDown), node(h.NodeGuarded)
}
