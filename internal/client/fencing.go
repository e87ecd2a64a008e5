package client

import (
	"context"

	"github.com/redlock-go/redlock/internal/client/fence"
	"github.com/redlock-go/redlock/internal/rules/fencing"
)

// The acts of fencing, on all groups: see [fence.Acts].

// InitFencing gives the nodes of a new fleet their vote, or the nodes of groups added by a change.
func (c *Client) InitFencing(ctx context.Context) error {
	ctx, acts := c.acts(ctx)
	return acts.Init(ctx)
}

// RecoverFencing gives nodes their vote after too many have forgotten, lost being nodes that never come back.
func (c *Client) RecoverFencing(ctx context.Context, atLeast uint64, lost []string) error {
	ctx, acts := c.acts(ctx)
	return acts.Recover(ctx, fencing.Token(atLeast), lost)
}

// ChangeFencing has clients of the present configuration refused, and clients of the next one served.
func (c *Client) ChangeFencing(ctx context.Context) error {
	ctx, acts := c.acts(ctx)
	return acts.Change(ctx)
}

// acts are those of all groups. They look at all nodes, so each has its first dial before: New does not wait for all.
func (c *Client) acts(ctx context.Context) (context.Context, fence.Acts) {
	a := fence.Acts{Join: c.join}
	ctx = orBackground(ctx)
	for _, g := range c.groups {
		g.AwaitAll(ctx.Done())
		a.Groups = append(a.Groups, g.Fence)
	}
	return ctx, a
}

func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}
