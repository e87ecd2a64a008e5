package group

import (
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/quorum"
)

// outcome returns the error of the whole, and the operation that decides it: a lock of
// several keys is lost, or taken, if one of them is. An error of the call itself comes first;
// unsent, no node has heard of it.
func (c *Calls) outcome(ended error) (op *engine.Op, unsent bool, err error) {
	op = &c.First().Op
	if ended != nil {
		return op, c.asked == 0 && (ended == engine.ErrBusy || ended == engine.ErrClosed), ended
	}
	if c.one != nil {
		return op, false, op.Err
	}
	if c.vain != nil {
		return c.vain, true, c.vain.Err
	}
	for _, one := range c.sent() {
		if next := engine.Joint(err, one.Err); next != err {
			op, err = &one.Op, next
		}
	}
	return op, false, err
}

// Explain returns err, the result of the whole, as the API shows it. op has decided it.
func (c *Calls) Explain(op *engine.Op, err error) error {
	for _, p := range c.parts {
		if slices.ContainsFunc(p.calls, func(one *engine.Call) bool { return &one.Op == op }) {
			return p.site.Explain(op, err)
		}
	}
	return c.home.Explain(op, err)
}

// Note counts the result of a lock of several keys.
func (c *Calls) Note(err error) {
	if c.all != nil {
		c.home.engine.Note(c.all[0].Kind, err)
	}
}

// Split is the call for the first key with split votes, and the group that was asked.
func (c *Calls) Split() (*Group, *engine.Call) {
	if c.one != nil {
		return c.home, c.one
	}
	for _, p := range c.parts {
		for _, one := range p.calls {
			if one.Err == engine.ErrSplit {
				return p.site, one
			}
		}
	}
	return c.home, c.all[0]
}

// Until is when the validity of a lock ends that was acquired.
func (c *Calls) Until() time.Duration {
	if c.one != nil {
		return c.one.Until
	}
	least := clock.Never
	for _, one := range c.all {
		least = min(least, one.Until)
	}
	return least
}

// Absent is the nodes that have none of the keys. Nodes of several groups have no common numbers.
func (c *Calls) Absent() quorum.Set {
	if c.one != nil {
		return c.one.Absent
	}
	if len(c.parts) > 1 {
		return 0
	}
	absent := quorum.Everything
	for _, one := range c.all {
		absent &= one.Absent
	}
	return absent
}

// Granted reports to the fences which nodes have granted an acquire.
func (c *Calls) Granted() {
	if c.one != nil {
		c.home.fence.Granted(&c.one.Op)
	}
	for _, p := range c.parts {
		p.site.fence.Granted(p.ops()...)
	}
}

// Again reports whether an acquire that has ended with err is to be made again at once, as the
// fence of the group decides that was asked last. Else it returns the error that is to be reported.
func (c *Calls) Again(err error) (bool, error) {
	proposal := &c.First().Proposal
	if c.one != nil {
		return c.home.fence.Again(proposal, err, &c.one.Op)
	}
	if c.asked == 0 {
		return false, err
	}
	p := c.parts[c.asked-1]
	return p.site.fence.Again(proposal, err, p.ops()...)
}

// ops is the operation of each call, where acquires are fenced.
func (p part) ops() (ops []*engine.Op) {
	if p.site.fence != nil {
		for _, one := range p.calls {
			ops = append(ops, &one.Op)
		}
	}
	return ops
}

// Refused is the call for the key at a place, if nodes have refused that since it was taken, or nil.
func (c *Calls) Refused(place int) *engine.Call {
	if sent := c.sent(); place < len(sent) && !sent[place].Over() && (sent[place].Err == engine.ErrTaken || sent[place].Err == engine.ErrSplit) {
		return sent[place]
	}
	return nil
}
