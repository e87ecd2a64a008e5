package group

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/quorum"
)

// Contest is what a call learns of others that want its lock at the same time. Where it wins, the lock is held at least
// until they have seen it: else they would do the same work again. A nil Contest is not interested.
type Contest struct {
	denied  atomic.Bool   // a node has denied an attempt: it was another's there
	granted clock.Instant // when the lock was won
	least   time.Duration // from then on, if others were met
}

// deniedBy is what the engine sets, or nil.
func (c *Contest) deniedBy() *atomic.Bool {
	if c == nil {
		return nil
	}
	return &c.denied
}

// won notes a grant, after so many rounds of split votes.
func (c *Contest) won(g *Group, rounds int, trip time.Duration) {
	if c != nil {
		c.granted, c.least = g.clock.Now(), g.lines.AfterContest(rounds, trip)
	}
}

// stay is for how long the lock is still to be held. A node may have denied it after the grant. One without an answer
// shows nothing.
func (c *Contest) stay(now clock.Instant) time.Duration {
	if c == nil || !c.denied.Load() {
		return 0
	}
	return max(0, c.granted.Add(c.least).Sub(now))
}

// awaitSplit waits for this caller's turn to try again after split votes, and then looks whether another has won
// meanwhile: the attempt itself would not tell, where the winner has a majority and this caller the other nodes. An
// error is what has ended the wait, or ErrTaken. It holds nothing meanwhile: the release of the lost attempt is on its
// way, and stays ahead of the look and of the next attempt on each connection.
func (g *Group) awaitSplit(c *Calls, round int) error {
	at, split := c.Split()
	pause := at.lines.AfterSplit(string(split.Key), split.Tally.Nodes(quorum.Granted), round, split.Trip)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.First().Watched():
		return context.Canceled
	case <-g.ending:
		return engine.ErrClosed
	}
	if at.isHeld(split) {
		return engine.ErrTaken
	}
	return nil
}

// leastLook is the least time for the nodes to answer a look.
const leastLook = 5 * time.Millisecond

// isHeld reports whether a quorum of nodes shows one value at the key of a call with split votes: its holder's. It waits
// for all nodes, but not for long, since it is no attempt. What it does not learn, the next attempt finds out.
func (g *Group) isHeld(split *engine.Call) bool {
	seen, err := g.ask(split.Watched(), split.KeyText(), max(leastLook, 4*split.Trip))
	return err == nil && summarize(seen, g.Members().Quorum).Value.Show() != ""
}
