package engine

import (
	"context"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/fencing"
)

// Call is an operation on one key of a lock, as a rule with a waiting caller.
type Call struct {
	Op
	On       *Engine          // that of the key's group
	And      *Call            // for the lock's next key, or nil
	Asked    bool             // it was given to its engine
	Proposal fencing.Proposal // of a caller of fenced acquires
	Ahead    func()           // queues the release of a lock that the caller has, ahead of the acquire; or nil

	waits bool          // asked, and not waited for yet
	done  chan struct{} // holds one
}

// lone is the caller of c, where it is the only one.
func (c *Call) lone(now clock.Instant) lone {
	return lone{own: 1, done: c.done, limit: c.limit, from: now, span: min(aloneFor, c.Timeout)}
}

// Complete implements Completion. The driver calls it, for it is no user code.
func (c *Call) Complete(*Op) { c.done <- struct{}{} }

// Limit is when a caller waits no longer: its context has ended, or an instant has come. The zero Limit is none. A
// context is user code, so only the caller's goroutine calls it. The driver knows its Done channel: a channel cannot
// block or panic.
type Limit struct {
	Done <-chan struct{} // nil: it does not end
	At   clock.Instant   // 0: none
}

// IsOver reports whether the caller waits no longer. It runs no user code.
func (l Limit) IsOver(now clock.Instant) bool {
	return l.At != 0 && now >= l.At || l.Done != nil && IsClosed(l.Done)
}

// Watch makes a limit end the next operations of a chain.
func (c *Call) Watch(l Limit) {
	for ; c != nil; c = c.And {
		c.limit = l
	}
}

// Watched is the limit of Watch.
func (c *Call) Watched() Limit { return c.limit }

// Wait waits for the end of a call.
func (c *Call) Wait() { <-c.done }

// Ended is nil for a call with a result, and else context.Canceled: the limit of its caller has ended it. The
// context itself is asked for its error once no other caller waits for this one.
func (c *Call) Ended() error {
	if c.Err == context.Canceled {
		return c.Err
	}
	return nil
}

// IsClosed reports whether a Done channel is closed. It runs no user code.
func IsClosed(done <-chan struct{}) bool {
	select {
	case <-done: // never, where it is nil
		return true
	default:
		return false
	}
}
