package fence

import (
	"context"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/texts"
)

// operator is one call of InitFencing.
type operator struct {
	atLeast uint64
	alone   bool // too few nodes have a vote for the others to know all tokens
	warned  bool
}

// floor is that of a node which gets its vote now, after its quarantine. A clock is trusted, and
// nodes without a vote are, only where those that have one are too few.
func (o *operator) floor(c *Client) uint64 {
	if !o.alone {
		return fencing.InitFloor(o.atLeast, block, 0, 0)
	}
	var shown uint64
	for node := range c.cfg.Nodes {
		if a, err := c.askNow(node, fencing.ShowVerb); err == nil && a.Code == fencing.OK {
			shown = max(shown, a.Token)
		}
	}
	if log := c.cfg.Logger; log != nil && shown > o.atLeast && !o.warned {
		o.warned = true
		log.Warn("redlock: InitFencing was given a smaller token than nodes show; the greater counts", "atLeast", o.atLeast, "shown", shown)
	}
	now, _ := c.micros() // it was right when the call began
	return fencing.InitFloor(o.atLeast, block, shown, now)
}

// Initialize gives nodes without a vote one, though too many have forgotten for them to be
// brought back by the others. It waits for the longest TTL. atLeast is the largest token
// that the resources have seen; all that are given from then on are larger. It reports whether the
// nodes that had a vote were too few.
func (c *Client) Initialize(ctx context.Context, atLeast uint64) (alone bool, err error) {
	if atLeast > fencing.MaxToken-2*block {
		return false, engine.WrongArgument("atLeast is %d, which leaves no tokens below 2^53", atLeast)
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if _, err := c.micros(); err != nil {
		return false, err
	}
	by := operator{atLeast: atLeast}
	active, forgotten, all := uint64(0), uint64(0), make([]recovery, len(c.cfg.Nodes))
	for node := range all {
		a, err := c.askNow(node, fencing.RaiseVerb, strconv.FormatUint(by.floor(c), 10))
		switch {
		case err == nil && a.Code == fencing.OK:
			active |= bit(node)
		case err == nil && a.Code == fencing.Foreign:
			return false, c.misfit()
		case err == nil && a.Code == fencing.Amnesia:
			forgotten |= bit(node)
		}
	}
	by.alone = !c.fleet.Now.Knows(active) && !c.fleet.Next.Knows(active)
	for node := range all {
		all[node].node = node
		if all[node].Rejoin = fencing.BeginRejoin(c.fleet, node); by.alone && forgotten&bit(node) != 0 {
			all[node].Rejoin = fencing.BeginInit(c.fleet, node)
		}
	}
	return by.alone, c.initialize(ctx, all, &by)
}

// initialize brings all nodes back, until enough have their vote.
//
// The operator's number holds for what had been forgotten when the call began. A node that
// forgets later may have voted since, by another operator's call, for locks that the number
// does not cover. So the nonces that nodes have in the first round are those that it is
// used for; all other nodes are left to those that have a vote by then.
func (c *Client) initialize(ctx context.Context, all []recovery, by *operator) error {
	nonces := make([]string, len(all))
	answers := newBell()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for first := true; ; first = false {
		pause, voting, known := never, uint64(0), uint64(0)
		for node := range all {
			r := &all[node]
			again := c.advance(r, answers.ring, by)
			for r.asked != nil && answers.await(c.cfg.Ending) {
				again = c.advance(r, answers.ring, by)
			}
			switch nonce := r.Nonce(); {
			case r.Finished():
				c.voting(node, r.connection)
				voting |= bit(node)
				continue
			case nonce == "":
			case first:
				nonces[node] = nonce
				known |= bit(node)
			case nonce != nonces[node] && by.alone:
				*r = recovery{Treatment: fencing.Treatment{Rejoin: fencing.BeginRejoin(c.fleet, node)}, node: node}
				nonces[node] = nonce
			}
			if c.cfg.IsUp(node) {
				pause = min(pause, again)
			}
		}
		switch {
		case pause == never && c.fleet.IsQuorum(voting):
			return nil // nodes that are down are brought back by the others
		case engine.IsClosed(c.cfg.Ending):
			return engine.ErrClosed
		case first && by.alone && !c.fleet.IsQuorum(voting|known):
			return c.Votes()
		}
		timer.Reset(min(max(pause, time.Millisecond), fencing.MinPause))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return texts.NotReady(ctx, c.Votes())
		case <-c.cfg.Ending:
			return engine.ErrClosed
		}
	}
}
