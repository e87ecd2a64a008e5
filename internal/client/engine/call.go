package engine

import (
	"context"
	"time"

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
	Ahead    func()           // queues the release of a lock of the caller, ahead of the acquire; or nil
	Behind   *Query           // a question to one node, to be sent right behind a call of Do; or nil

	waits bool          // asked, and not waited for yet
	done  chan struct{} // holds one
}

// lone is the caller of c, where it is the only one.
func (c *Call) lone(now clock.Instant) lone {
	return lone{own: 1, done: c.done, limit: c.limit, from: now, span: min(aloneFor, c.Timeout)}
}

// Call returns a Call for any number of uses with Do, and then for its Free; or an error if an argument is wrong. Do does
// not check them again. The engine reads the key where it is and never writes to it.
func (e *Engine) Call(kind Kind, key string, ttl time.Duration) (*Call, error) {
	c, _ := e.calls.Get().(*Call)
	if c == nil {
		c = &Call{On: e, done: make(chan struct{}, 1)}
	}
	c.Done, c.Ends, c.Absent, c.Tail, c.OfSet, c.Before, c.Repairer = c, wakes, 0, "", false, 0, nil
	c.Stay, c.Denied, c.Shared, c.OfTerm, c.Asked, c.waits = 0, nil, false, false, false, false
	c.Block, c.Proposal = fencing.Block{}, fencing.Proposal{}
	c.Kind, c.TTL = kind, ttl
	c.SetKey(key)
	if err := e.check(&c.Op); err != nil {
		c.Free()
		return nil, err
	}
	return c, nil
}

// Lengthen has an acquire ask for a longer TTL, to cover a term.
func (c *Call) Lengthen(ttl time.Duration) {
	if ttl > c.TTL {
		c.TTL, c.OfTerm = ttl.Truncate(time.Millisecond), true
	}
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

// Do submits a call and waits for its result. An error is ErrBusy, but not of a release, ErrClosed or
// context.Canceled: the call's Limit is over. Then the release of an acquire is under way, an extend may or may not
// take effect, and a release is sent. The result of the operation itself is in the Call.
//
// If along is not nil, it is sent along after the call, a release. It ends once in every case. Its caller waits for the
// end, and gets the same error as c if neither was sent: ErrBusy too.
//
// Do waits on one channel only. To wait for the context as well would mean a select. It takes the locks of both
// channels twice for every operation, and the context's is often shared. So the watchdog looks at the Done channels
// of the calls under way at each of its ticks, maxTick apart at most.
func (e *Engine) Do(c, along *Call) error {
	var l list
	l.push(&c.Op)
	now := e.nodes.clock.Now()
	by := c.lone(now)
	if along != nil {
		by.own++
	}
	c.Asked = true
	err := e.queueAll(l, along, now)
	if q := c.Behind; q != nil {
		c.Behind = nil
		e.queries.follow(q, err == nil)
	}
	if err != nil {
		c.Asked = false
		return err
	}
	e.submitted(c.Kind, now, by)
	<-c.done
	return c.Ended()
}
