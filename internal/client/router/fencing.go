package router

import (
	"context"

	"github.com/redlock-go/redlock/internal/client/fence"
	"github.com/redlock-go/redlock/internal/rules/fencing"
)

// The acts of fencing, on all groups: see [fence.Acts].

// InitFencing gives the nodes of a new fleet their vote, or the nodes of groups added by a change.
func (r *Router) InitFencing(ctx context.Context) error {
	return r.acts().Init(orBackground(ctx))
}

// RecoverFencing gives nodes their vote after too many have forgotten, lost being nodes that never come back.
func (r *Router) RecoverFencing(ctx context.Context, atLeast uint64, lost []string) error {
	return r.acts().Recover(orBackground(ctx), fencing.Token(atLeast), lost)
}

// ChangeFencing has clients of the present configuration refused, and clients of the next one served.
func (r *Router) ChangeFencing(ctx context.Context) error {
	return r.acts().Change(orBackground(ctx))
}

func (r *Router) acts() fence.Acts {
	a := fence.Acts{Join: r.join}
	for _, g := range r.groups {
		a.Groups = append(a.Groups, g.Fence())
	}
	return a
}

func orBackground(ctx context.Context) context.Context {
	if ctx == nil {
		return context.Background()
	}
	return ctx
}
