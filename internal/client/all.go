package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/redlock-go/redlock/internal/base/metrics"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/group"
	"github.com/redlock-go/redlock/internal/client/waiting"
)

// groupsError is an error of groups: no lock can be acquired in them, or no token can come from them.
type groupsError struct {
	groups int
	of     []error // why, each with its label
}

// Error names the groups, and so the keys.
func (l *groupsError) Error() string {
	var all []string
	for _, err := range l.of {
		all = append(all, strings.Replace(err.Error(), ": redlock: ", ": ", 1))
	}
	return fmt.Sprintf("redlock: the keys of %d of %d groups cannot be locked: %s", len(l.of), l.groups, strings.Join(all, "; "))
}

func (l *groupsError) Unwrap() []error { return l.of }

// join is one error of the errors of the groups, which may be nil. With one group it is that group's own.
func (c *Client) join(errs []error) error {
	all := &groupsError{groups: len(errs)}
	for i, err := range errs {
		switch {
		case err == engine.ErrClosed || len(errs) == 1:
			return err
		case err != nil:
			all.of = append(all.of, fmt.Errorf("%s: %w", c.label(i), err))
		}
	}
	if len(all.of) == 0 {
		return nil
	}
	return all
}

// Ready waits until an acquire can win in every group, or with every until every node may vote: in all groups at one
// moment, so a wait for one has it look at the others again. With ctx it ends for all of them.
func (c *Client) Ready(ctx context.Context, every bool) error {
	ctx = orBackground(ctx)
	errs := make([]error, len(c.groups))
	for again := true; again; {
		again = false
		for i, g := range c.groups {
			waited, err := g.Ready(ctx, every)
			if err == engine.ErrClosed {
				return err
			}
			errs[i], again = err, again || waited && err == nil
		}
	}
	return c.join(errs)
}

// Stats is the sums of the groups' counts, each at one moment, and all nodes, as shown by node.
func Stats[N any](c *Client, node func(metrics.Node) N) (s metrics.Stats[N]) {
	for _, g := range c.groups {
		held, kept, lost := g.keeper.Count()
		s.Held += held
		s.KeptAlive += kept
		s.Lost += lost
		waiting.AddStats(g.lines, &s)
		group.AddStats(g.Group, &s, node)
	}
	return s
}
