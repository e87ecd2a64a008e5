package fence

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/texts"
)

// Change has the next configuration suffice alone: see [fencing.Change]. It waits for the longest
// TTL of both, and for the groups of meeting. Each step may be repeated, so a call that ends early is
// made again, and two at once do what one does. A call after one that was confirmed opens what that one has missed.
//
// The groups meet twice. When all have come to the first meeting each looks once more: one that came early may have lost all its nodes
// while it waited for the others, and an operator may have given these their vote as before the change.
func (c *Client) Change(ctx context.Context, m *Meeting) (err error) {
	defer func() {
		if err != nil {
			m.fail()
		}
	}()
	change, met := fencing.BeginChange(c.fleet), 0
	for change.Look(); ; {
		nonce := []string{c.nonce()}
		for node, s := range c.askAll(fencing.SealVerb, func(int) ([]string, bool) { return nonce, true }) {
			switch {
			case s.err == nil && s.answer.Code == fencing.Foreign:
				return c.misfit()
			case s.err == nil:
				change.Sealed(node, s.answer)
			}
		}
		pause := fencing.MinPause
		switch {
		case change.Done() || change.Confirmed():
			if err := m.meet(ctx, c, met, change.Floor()); err != nil {
				return err
			}
			if met++; met == 1 {
				change.Look()
				continue
			}
			if change.Raise(m.floor); c.open(&change) {
				return nil
			}
		case change.Complete() && met == 1:
			return errSince
		case change.Complete():
			pause = c.fleet.Quarantine // the locks of clients that are refused from now on end
			c.log(slog.LevelInfo, "redlock: clients with the old configuration alone are refused, and those with the new one alone follow",
				"old", c.fleet.Now.Name, "new", c.fleet.Next.Name, "wait", pause)
			change.Look()
		}
		if err := c.sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// open has nodes of the next configuration serve the clients that have it alone. It reports
// whether a quorum of them does.
func (c *Client) open(change *fencing.Change) bool {
	opened := change.Opened()
	for node, s := range c.askAll(fencing.RejoinVerb, func(node int) ([]string, bool) {
		r, sealed := change.Opens(node)
		return []string{r.Nonce, strconv.FormatUint(r.Floor, 10), r.Fleet}, sealed
	}) {
		if s.err == nil && (s.answer.Code == fencing.OK || s.answer.Code == fencing.Active) {
			opened.Add(node)
		}
	}
	if !c.fleet.Next.IsQuorum(opened) {
		return false
	}
	c.log(slog.LevelInfo, "redlock: nodes serve clients with the new configuration alone", "new", c.fleet.Next.Name, "nodes", c.names(opened))
	if missed := c.fleet.Next.Nodes &^ opened; missed != 0 {
		c.log(slog.LevelWarn, "redlock: nodes were missed by the change, and do not serve clients with the new configuration alone: call ChangeFencing again once they are up",
			"nodes", c.names(missed))
	}
	return true
}

// sleep waits. The error says why nodes have no vote if ctx ends before.
func (c *Client) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return texts.NotReady(ctx, c.Votes())
	case <-c.cfg.Ending:
		return engine.ErrClosed
	}
}
