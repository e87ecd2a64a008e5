package router

import (
	"context"
	"fmt"
	"slices"
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
	return r.act(ctx, "InitFencing", 0, views, func() []fencing.Verdict {
		looks := make([]*fencing.Look, len(views))
		for i := range views {
			looks[i] = &views[i].Look
			orders[i] = fence.Order{Alone: !looks[i].Knows(), New: true}
		}
		return fencing.Inits(looks, func(i int) bool { return r.groups[i].IsNew() })
	}, func(ctx context.Context, i int) error { return views[i].Vote(ctx, orders[i]) })
}

// RecoverFencing gives nodes their vote of which too many have forgotten, lost being nodes that never come back.
func (r *Router) RecoverFencing(ctx context.Context, atLeast uint64, lost []string) error {
	orders, views := make([]fence.Order, len(r.groups)), make([]fence.View, len(r.groups))
	if atLeast == 0 {
		return engine.WrongArgument("atLeast is 0: RecoverFencing needs the largest token that the resources have seen, and InitFencing is for a new fleet")
	}
	return r.act(ctx, "RecoverFencing", atLeast, views, func() (all []fencing.Verdict) {
		stage := fencing.Begun
		for i := range views {
			views[i].Name(lost)
			all = append(all, views[i].Recovers())
			stage = max(stage, views[i].Memory.Stage())
		}
		for i, v := range all {
			orders[i] = fence.Order{AtLeast: atLeast, Alone: v == fencing.Acts, Stage: stage}
		}
		return all
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
	return r.act(ctx, "ChangeFencing", 0, views, func() (all []fencing.Verdict) {
		for i := range views {
			all = append(all, views[i].Changes())
		}
		return all
	}, func(ctx context.Context, i int) error { return r.groups[i].Fence().Change(ctx, m) })
}

// patience is how many looks wait for nodes beyond a quorum, 100 ms apart.
const patience = 10

// act looks at all groups, until none has to wait, and then calls do for all groups at once, unless one is refused.
func (r *Router) act(ctx context.Context, name string, atLeast uint64, views []fence.View, check func() []fencing.Verdict, do func(context.Context, int) error) error {
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
	for looks := 1; ; looks++ {
		err := r.together(ctx, func(ctx context.Context, i int) (err error) {
			if engine.IsClosed(r.ending) {
				return engine.ErrClosed
			}
			views[i], err = r.groups[i].Fence().Look()
			views[i].Patient = looks < patience
			return err
		})
		if err != nil {
			return err
		}
		verdicts := check()
		all := lacking{groups: len(views)}
		for i, v := range verdicts {
			all.add(r.label(i), views[i].Err(v))
		}
		if err := all.one(); err != nil {
			return err
		}
		if !slices.Contains(verdicts, fencing.Waits) {
			return r.together(ctx, do)
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
