package engine

import (
	"cmp"
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

// An operation on a lock is a chain of calls, one for each of its keys, linked by And. Those at one engine stand together,
// and are queued together: all of them or none. They have one result. The first counts and reports it. A method of a
// chain is called on its first call. next says which calls are asked next, for Do, for a renewal and for Submit.

// Manner is how a release is made: the first two have a caller to hear of the result, the others say when it is sent.
type Manner uint8

const (
	Awaited Manner = iota // at once: its caller waits for the nodes
	Left                  // at once: the context of its caller has ended, and the caller hears that
	Soon                  // with the next operation, or a little later
	Driven                // at once, as by Drive
	Ahead                 // with the next operation of its caller, and before that
)

// IsAwaited reports whether the caller learns of the result.
func (m Manner) IsAwaited() bool { return m <= Left }

// Each calls f for each call of a chain.
func (c *Call) Each(f func(*Call)) {
	for ; c != nil; c = c.And {
		f(c)
	}
}

// Free gives a chain back to its engines. A late vote finds another generation in a call, and decides nothing: see
// Op.state.
func (c *Call) Free() {
	for c != nil {
		next := c.And
		c.Key, c.limit, c.And, c.Ahead, c.Behind = nil, Limit{}, nil, nil, nil
		c.On.calls.Put(c)
		c = next
	}
}

// About sets the lock of the calls. The nodes of absent do not have its key; b is of a fenced acquire.
func (c *Call) About(t token.Token, b fencing.Block, absent quorum.Set) {
	c.Each(func(c *Call) { c.Token, c.Block, c.Absent, c.Asked, c.waits = t, b, absent, false, false })
}

// next is the first of the calls to be asked next, or nil. An acquire asks one engine after another, and none after a
// denial: of two overlapping sets, the first one where they meet first wins. With looks it first asks those known to
// have no quorum: keys at others would be held in vain. That may wait for the driver.
func (c *Call) next(looks bool) (next *Call) {
	for p := c; p != nil; p = p.And {
		switch {
		case p.Asked && c.Kind == Acquire && p.Err != nil:
			return nil
		case p.Asked:
		case next == nil, looks && p.On != next.On && p.On.LacksQuorum() && !next.On.LacksQuorum():
			next = p
		}
	}
	return next
}

// ask has the next calls queued by f, and reports whether there were any.
func (c *Call) ask(looks bool, f func(*Engine, list) error) (asks bool, err error) {
	first := c.next(looks)
	if first == nil {
		return false, nil
	}
	var l list
	ahead := false
	for p := first; p != nil && p.On == first.On; p = p.And {
		l.push(&p.Op)
		p.Asked, p.waits = true, true // its end may come before f returns
		if p.Ahead != nil {
			p.Ahead()
			p.Ahead, ahead = nil, true
		}
	}
	if err = f(first.On, l); err == nil {
		return true, nil
	}
	if ahead {
		first.On.Drive()
	}
	for p := first; p != nil && p.On == first.On; p = p.And {
		p.Asked, p.waits = false, false
	}
	return false, err
}

// askAll is ask for all calls, until f fails.
func (c *Call) askAll(f func(*Engine, list) error) (err error) {
	for asks := true; asks; {
		asks, err = c.ask(false, f)
	}
	return err
}

// wait waits for the ends of the calls asked. The error is context.Canceled, if the end of their caller's context has ended
// one of them.
func (c *Call) wait() (err error) {
	for p := c; p != nil; p = p.And {
		if p.waits {
			p.Wait()
			p.waits, err = false, cmp.Or(err, p.Ended())
		}
	}
	return err
}

// Do makes the calls, and returns the result of the whole and the call that decides it. The error is context.Canceled where
// the end of the caller's context has ended one of them. No user code runs meanwhile: others may wait for this caller.
func (c *Call) Do() (by *Call, err error) {
	if c.And == nil {
		return c.Outcome(c.On.Do(c, nil))
	}
	if c.Kind != Acquire {
		return c.Outcome(c.AskAll())
	}
	for asks := true; asks && err == nil; {
		asks, err = c.ask(true, (*Engine).begin)
		err = cmp.Or(err, c.wait())
	}
	return c.Outcome(err)
}

// AskAll makes all calls at once. An error is one of the calls, not of their result.
func (c *Call) AskAll() error {
	err := c.askAll((*Engine).begin)
	return cmp.Or(err, c.wait())
}

// Sent is Do for an acquire of one key, sent along with a release: it has ended.
func (c *Call) Sent() (by *Call, err error) {
	c.Asked = true
	return c.Outcome(c.Ended())
}

// Enqueue queues all calls of a renewal. It does not block, and Drive sends them.
func (c *Call) Enqueue() error { return c.askAll((*Engine).enqueue) }

// Submit asks the next engine for a user without a waiting caller, and reports whether there was one. Done is called when
// the call has a result.
func (c *Call) Submit() (asks bool, err error) {
	return c.ask(false, func(e *Engine, l list) error { return e.Submit(l.first) })
}

// Release makes the calls, which are releases: all of them or, with ErrClosed, none. The acquire of the first waiter
// for a lock of one key is sent along; ErrBusy: there is no room for both. A release not awaited is counted
// when the first key has a result.
func (c *Call) Release(how Manner, along *Call) (by *Call, err error) {
	switch {
	case how == Left:
		return c.Outcome(c.askAll(func(e *Engine, l list) error {
			err := e.queueReleases(l, nil, true)
			if err == nil {
				for op := l.first; op != nil; op = op.next {
					e.counters.noteOp(op, context.Canceled)
				}
				e.drive(lone{})
			}
			return err
		}))
	case how.IsAwaited() && along != nil:
		return c.Outcome(c.On.Do(c, along))
	case how.IsAwaited():
		return c.Do()
	}
	c.OfSet = false
	_ = c.askAll(func(e *Engine, l list) error {
		err = cmp.Or(e.queueReleases(l, along, false), err)
		switch how {
		case Driven:
			e.Drive()
		case Soon:
			e.DriveSoon()
		}
		return nil
	})
	return c, err
}

// IsUnsent reports whether no node has heard of the calls.
func (c *Call) IsUnsent() bool {
	unsent := true
	c.Each(func(c *Call) { unsent = unsent && !c.Asked })
	return unsent
}

// Outcome is Result, or the error of the calls themselves, if not nil.
func (c *Call) Outcome(ended error) (by *Call, err error) {
	if ended != nil {
		return c, ended
	}
	return c.Result()
}

// Result is the result of the asked calls, and the one that decides it: a lock is lost, or taken, if one of its keys is.
func (c *Call) Result() (by *Call, err error) {
	by = c
	for p := c; p != nil; p = p.And {
		if !p.Asked {
			continue
		}
		if next := Joint(err, p.Err); next != err {
			by, err = p, next
		}
	}
	return by, err
}

// Rollback corrects the counts of calls completed well but in vain because of err, the result of the whole. What was
// acquired is released.
func (c *Call) Rollback(err error) {
	c.Each(func(c *Call) {
		if c.Asked && c.Err == nil {
			c.On.counters.correct(&c.Op, err)
			if c.Kind == Acquire {
				c.On.Abandon(&c.Op)
			}
		}
	})
}

// Explain returns err, the result of the whole decided by c, as the API shows it.
func (c *Call) Explain(err error) error { return c.On.Site.Explain(&c.Op, err) }

// Note counts the result of a lock of several keys.
func (c *Call) Note(err error) {
	if c.OfSet {
		c.On.Note(c.Kind, err)
	}
}

// Least is when the validity of the lock ends, as acquired or extended: that of the first of its keys to end.
func (c *Call) Least() clock.Instant {
	least := c.Until
	c.Each(func(c *Call) { least = min(least, c.Until) })
	return least
}

// LongestTrip is that of the calls asked.
func (c *Call) LongestTrip() (longest time.Duration) {
	c.Each(func(c *Call) { longest = max(longest, c.Trip) })
	return longest
}

// AllAbsent returns the nodes without any of the keys. Nodes of several engines have no common numbers.
func (c *Call) AllAbsent() quorum.Set {
	absent := quorum.Everything
	for p := c; p != nil; p = p.And {
		absent &= p.Absent
		if p.On != c.On {
			return 0
		}
	}
	return absent
}

// queueReleases queues a copy of each release without a waiting caller, and behind them, if it is not nil, the acquire
// of another caller: all of them or, with ErrClosed, none. The copies count unless the releases were counted.
func (e *Engine) queueReleases(releases list, along *Call, counted bool) error {
	now := e.nodes.clock.Now()
	var l list
	for op := releases.first; op != nil; op = op.next {
		op.begin(now)
		own := e.ledger.copyOf(op)
		own.Ends, own.OfSet = frees, op.OfSet || counted
		l.push(&own.Op)
	}
	return e.queueAll(l, along, now)
}

// Abandon sends the release of an acquire, completed well but unwanted after all, or without a waiting caller. Its
// result is not reported.
func (e *Engine) Abandon(op *Op) {
	e.ledger.cleanUp(op)
	e.drive(lone{})
}
