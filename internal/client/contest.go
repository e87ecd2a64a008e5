package client

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/quorum"
)

// contest is what a call learns of others that want its lock at the same time. Where it wins, the lock is held at least
// until they have seen it: else they would do the same work again. A nil contest is not interested.
type contest struct {
	denied  atomic.Bool   // a node has denied an attempt: it was another's there
	granted clock.Instant // when the lock was won
	least   time.Duration // from then on, if others were met
}

// deniedBy is what the engine sets, or nil.
func (c *contest) deniedBy() *atomic.Bool {
	if c == nil {
		return nil
	}
	return &c.denied
}

// won notes a grant, after so many rounds of split votes.
func (c *contest) won(g *site, rounds int, trip time.Duration) {
	if c != nil {
		c.granted, c.least = g.clock.Now(), g.lines.AfterContest(rounds, trip)
	}
}

// stay is for how long the lock is still to be held. A node may have denied it after the grant. One without an answer
// shows nothing.
func (c *contest) stay(now clock.Instant) time.Duration {
	if c == nil || !c.denied.Load() {
		return 0
	}
	return max(0, c.granted.Add(c.least).Sub(now))
}

// awaitSplit waits for this caller's turn to try again after split votes, and then looks whether another has won
// meanwhile: the attempt itself would not tell, where the winner has a majority and this caller the other nodes. An
// error is what has ended the wait, or ErrTaken. It holds nothing meanwhile: the release of the lost attempt is on its
// way, and stays ahead of the look and of the next attempt on each connection.
func (g *site) awaitSplit(split *engine.Call, round int) error {
	at := siteOf(split.On)
	pause := at.lines.AfterSplit(string(split.Key), split.Tally.Nodes(quorum.Granted), round, split.Trip)
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-split.Watched():
		return context.Canceled
	case <-g.ending:
		return engine.ErrClosed
	}
	if at.IsHeld(split) {
		return engine.ErrTaken
	}
	return nil
}
