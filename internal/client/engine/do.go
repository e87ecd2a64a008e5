package engine

import (
	"time"

	"github.com/redlock-go/redlock/internal/rules/fencing"
)

// Call returns a Call for any number of uses with Do, and then for its Free; or an error if an argument is wrong. Do does
// not check them again. The engine reads the key where it is and never writes to it.
func (e *Engine) Call(kind Kind, key string, ttl time.Duration) (*Call, error) {
	c, _ := e.calls.Get().(*Call)
	if c == nil {
		c = &Call{On: e, done: make(chan struct{}, 1)}
	}
	c.Done, c.Ends, c.Absent, c.Tail, c.OfSet, c.Before, c.Repairer = c, wakes, 0, "", false, 0, nil
	c.Stay, c.Denied, c.Shared, c.Asked, c.waits = 0, nil, false, false, false
	c.Block, c.Proposal = fencing.Block{}, fencing.Proposal{}
	c.Kind, c.TTL = kind, ttl
	c.SetKey(key)
	if err := e.check(&c.Op); err != nil {
		c.Free()
		return nil, err
	}
	return c, nil
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
	if err := e.queueAll(l, along, now); err != nil {
		c.Asked = false
		return err
	}
	e.submitted(c.Kind, now, by)
	<-c.done
	return c.Ended()
}
