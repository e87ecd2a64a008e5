package router

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fence"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/texts"
)

// The acts of fencing. Each looks at all nodes of all groups first. It writes to none of them before all
// that it needs have answered, and agree.

// InitFencing gives the nodes of a new fleet their vote, or those of the groups that a change adds.
func (r *Router) InitFencing(ctx context.Context) error {
	orders, views := make([]fence.Order, len(r.groups)), make([]fence.View, len(r.groups))
	return r.act(ctx, "InitFencing", 0, views, func() error {
		all := lacking{groups: len(views)}
		tokens, stage := false, fencing.Begun
		for i := range views {
			v := &views[i]
			all.add(r.label(i), v.CheckNew(r.groups[i].Fence().IsChanging() && !r.groups[i].IsNew()))
			orders[i] = fence.Order{Alone: !v.Knows(), New: !v.Knows()}
			tokens = tokens || v.HasTokens()
			stage = max(stage, v.Stage())
		}
		for i := range views {
			if tokens && orders[i].New && (!r.groups[i].IsNew() || stage != fencing.Begun) {
				all.add(r.label(i), fmt.Errorf("%w: nothing was changed: nodes without tokens here, and tokens in other groups: RecoverFencing is for a group that has lost them", engine.ErrConfig))
			}
		}
		return all.one()
	}, func(ctx context.Context, i int) error { return views[i].Vote(ctx, orders[i]) })
}

// RecoverFencing gives nodes their vote of which too many have forgotten, lost being nodes that never come back.
func (r *Router) RecoverFencing(ctx context.Context, atLeast uint64, lost []string) error {
	orders, views := make([]fence.Order, len(r.groups)), make([]fence.View, len(r.groups))
	return r.act(ctx, "RecoverFencing", atLeast, views, func() error {
		if atLeast == 0 {
			return engine.WrongArgument("atLeast is 0: RecoverFencing needs the largest token that the resources have seen, and InitFencing is for a new fleet")
		}
		all := lacking{groups: len(views)}
		stage := fencing.Begun
		for i := range views {
			forgotten, err := views[i].CheckForgotten(lost)
			all.add(r.label(i), err)
			orders[i] = fence.Order{AtLeast: atLeast, Alone: forgotten}
			stage = max(stage, views[i].Stage())
		}
		for i := range orders {
			orders[i].Stage = stage
		}
		return all.one()
	}, func(ctx context.Context, i int) error { return views[i].Vote(ctx, orders[i]) })
}

// ChangeFencing has clients of the present configuration refused, and those of the next one served. It waits until
// a quorum of each list of each group has its vote.
func (r *Router) ChangeFencing(ctx context.Context) error {
	for _, g := range r.groups {
		if g.Fence() != nil && !g.Fence().IsChanging() {
			return fmt.Errorf("%w: ChangeFencing needs a client of both lists: NextNodes, NextGroups or NextMaxTTL", engine.ErrConfig)
		}
	}
	m, views := fence.NewMeeting(len(r.groups)), make([]fence.View, len(r.groups))
	return r.act(ctx, "ChangeFencing", 0, views, func() error {
		all, ready := lacking{groups: len(views)}, true
		for i := range views {
			is, err := views[i].CheckChange()
			all.add(r.label(i), err)
			ready = ready && is
		}
		if err := all.one(); err != nil || ready {
			return err
		}
		return errWait
	}, func(ctx context.Context, i int) error { return r.groups[i].Fence().Change(ctx, m) })
}

// errWait is that all is to be looked at again.
var errWait = errors.New("wait")

// act looks at all groups, until check is done, and then calls do for all groups at once.
func (r *Router) act(ctx context.Context, name string, atLeast uint64, views []fence.View, check func() error, do func(context.Context, int) error) error {
	if ctx == nil {
		ctx = context.Background()
	}
	for _, g := range r.groups {
		if g.Fence() == nil {
			return fmt.Errorf("%w: %s needs Config.Fenced", engine.ErrConfig, name)
		}
	}
	if err := r.groups[0].Fence().Check(atLeast); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for {
		err := r.together(ctx, func(ctx context.Context, i int) (err error) {
			if engine.IsClosed(r.ending) {
				return engine.ErrClosed
			}
			views[i], err = r.groups[i].Fence().Look()
			return err
		})
		if err == nil {
			err = check()
		}
		if err == nil {
			return r.together(ctx, do)
		}
		if err != errWait {
			return err
		}
		timer := time.NewTimer(fencing.MinPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return texts.NotReady(ctx, r.votes())
		case <-r.ending:
			timer.Stop()
			return engine.ErrClosed
		}
	}
}

// votes is why nodes have no vote.
func (r *Router) votes() error {
	all := lacking{groups: len(r.groups)}
	for i, g := range r.groups {
		all.add(r.label(i), g.Fence().Votes())
	}
	return all.one()
}

// one is err, but of a client with one group that group's own.
func (l *lacking) one() error {
	if l.groups == 1 && len(l.of) > 0 {
		return unlabel(l.of[0])
	}
	return l.err()
}

func unlabel(err error) error {
	if inner, is := err.(interface{ Unwrap() error }); is {
		return inner.Unwrap()
	}
	return err
}
