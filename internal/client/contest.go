package client

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/quorum"
)

// awaitSplit waits for this caller's turn to try again after split votes, and then looks whether another has won
// meanwhile. The attempt itself may not show it: the winner then has a majority, and this caller the other nodes. An
// error is what has ended the wait, or ErrTaken. It holds nothing meanwhile: the release of the lost attempt is on its
// way, and stays ahead of the look and of the next attempt on each connection.
func (g *site) awaitSplit(split *engine.Call, round int) error {
	at := siteOf(split.On)
	pause := at.lines.AfterSplit(string(split.Key), split.Tally.Nodes(quorum.Granted), round, split.Trip)
	limit := split.Watched()
	if limit.At != 0 {
		pause = min(pause, g.left(limit.At))
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-limit.Done:
	case <-g.ending:
		return engine.ErrClosed
	}
	held := !limit.IsOver(g.clock.Now()) && at.IsHeld(split)
	switch {
	case held:
		return engine.ErrTaken
	case limit.IsOver(g.clock.Now()): // before the look, or in it
		return context.Canceled
	}
	return nil
}
