package client

import (
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/fleet"
	"github.com/redlock-go/redlock/internal/client/holding"
)

// operation is one operation on a lock, with the knowledge of groups beyond that of sites.
type operation struct {
	holding.Compound
	met *contest // of an acquire; or nil
}

// newCalls returns an operation of a kind on a lock, to be freed; or an error if the arguments are wrong. tail
// follows the token in the values of the client.
func newCalls(home *site, kind engine.Kind, s *holding.State, ttl time.Duration, tail string) (c operation, err error) {
	err = c.Compose(home, kind, s, ttl, tail)
	return c, err
}

// groupOf is the group of a part.
func groupOf(p holding.Part) *site { return p.Site.(*site) }

// Split is the call for the first key with split votes, and its group.
func (c *operation) Split() (*site, *engine.Call) {
	at := c.Parts()[0]
	for _, p := range c.Asked() {
		if p.Err == engine.ErrSplit {
			at = p
			break
		}
	}
	return groupOf(at), at.Call
}

// meet has a contest learn of the nodes' denials, where the calls are those of an acquire.
func (c *operation) meet(met *contest) {
	c.met = met
	for _, p := range c.Parts() {
		p.Denied = met.deniedBy()
	}
}

// Trip is the longest of the parts asked.
func (c *operation) Trip() (longest time.Duration) {
	for _, p := range c.Asked() {
		longest = max(longest, p.Trip)
	}
	return longest
}

// stayFor has released keys stay at the nodes.
func (c *operation) stayFor(stay time.Duration) {
	for _, p := range c.Parts() {
		p.Stay = stay.Truncate(time.Millisecond)
	}
}

// MetIdleEnd reports whether an acquire was written to a connection that the server had closed while it was idle. It
// may have been applied, so it is not sent again: another one may be.
func (c *operation) MetIdleEnd() bool {
	for _, p := range c.Asked() {
		for _, f := range p.Failures {
			if errors.Is(f.Err, fleet.ErrIdle) {
				return true
			}
		}
	}
	return false
}

// Stands notes an acquire that has won, and reports whether this process may take the lock: not if a younger grant is
// known, or a holder that got an older lock passed on.
func (c *operation) Stands() bool {
	for _, p := range c.Parts() {
		if !groupOf(p).lines.Granted(p.KeyText(), p.Serial, p.Shared) {
			return false
		}
	}
	return true
}

// Granted reports to the fences which nodes have granted an acquire.
func (c *operation) Granted() {
	for _, p := range c.Parts() {
		groupOf(p).fence.Granted(&p.Op)
	}
}

// Again reports whether an acquire that ended with err is to be made again at once: the fence of the group asked last
// decides. Else it returns the error to report.
func (c *operation) Again(err error) (bool, error) {
	asked := c.Asked()
	if len(asked) == 0 {
		return false, err
	}
	last := groupOf(asked[len(asked)-1])
	var room [1]*engine.Op // on the stack of the caller of one key
	ops := room[:0]
	for _, p := range asked {
		if groupOf(p) == last && last.fence != nil {
			ops = append(ops, &p.Op)
		}
	}
	again, err := last.fence.Again(&c.First().Proposal, err, ops...)
	return again && !c.First().Shared, err
}
