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
// made again. Without a change under way it does nothing.
func (c *Client) Change(ctx context.Context, m *Meeting) (err error) {
	if c.fleet.Next.Nodes == 0 {
		return nil
	}
	defer func() {
		if err != nil {
			m.fail()
		}
	}()
	if floor, changed := c.isChanged(); changed {
		m.join(floor)
		return nil
	}
	change, met := fencing.BeginChange(c.fleet), false
	for change.Look(); ; {
		for node := range c.cfg.Nodes {
			switch a, err := c.askNow(node, fencing.SealVerb, c.nonce()); {
			case err == nil && a.Code == fencing.Foreign:
				return c.misfit()
			case err == nil:
				change.Sealed(node, a)
			}
		}
		pause := fencing.MinPause
		switch {
		case change.Confirmed():
			if !met {
				m.join(change.Floor())
				met = true
			}
			if err := m.await(ctx, c); err != nil {
				return err
			}
			if change.Raise(m.floor); c.open(&change) {
				return nil
			}
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
	var opened uint64
	for node := range c.cfg.Nodes {
		if r, sealed := change.Opens(node); sealed {
			a, err := c.askNow(node, r.Verb, r.Nonce, strconv.FormatUint(r.Floor, 10), r.Fleet)
			if err == nil && (a.Code == fencing.OK || a.Code == fencing.Active) {
				opened |= bit(node)
			}
		}
	}
	if !c.fleet.Next.IsQuorum(opened) {
		return false
	}
	c.log(slog.LevelInfo, "redlock: nodes serve clients with the new configuration alone", "new", c.fleet.Next.Name, "nodes", c.names(opened))
	c.remind(c.fleet.Next.Nodes &^ opened)
	return true
}

// isChanged reports whether a call before this one has done its work: so many nodes serve the
// clients of the next configuration alone that each of its quorums has one of them. Each of these
// was given the floor, or has learned it.
func (c *Client) isChanged() (floor uint64, changed bool) {
	var alone uint64
	for node := range c.cfg.Nodes {
		a, err := c.askNow(node, fencing.ReadVerb)
		if err == nil && a.Code == fencing.OK && fencing.ParseMarker(a.Text).Me.Fleet == c.fleet.Next.Name {
			alone |= bit(node)
			floor = max(floor, a.Token)
		}
	}
	changed = c.fleet.Next.Knows(alone)
	if changed {
		c.remind(c.fleet.Next.Nodes &^ alone)
	}
	return floor, changed
}

// remind logs what is to be done with nodes that a change has missed.
func (c *Client) remind(missed uint64) {
	if missed != 0 {
		c.log(slog.LevelWarn, "redlock: nodes were missed by the change, and may not serve clients with the new configuration alone: delete the key of the tokens there, and they are brought back",
			"nodes", c.names(missed), "key", c.cfg.Set)
	}
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
