package fence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/rules/fencing"
)

// Errors of acts that have changed nothing.
var (
	errNotNew  = texts.WrongConfig("redlock: InitFencing is for nodes that are new")
	errUnclear = errors.New("redlock: it is not clear that too many nodes have forgotten the fencing tokens")
)

// Acts is the acts of an operator, each on all groups of a client at once. An act looks at all nodes first. It writes
// to none of them before all the necessary ones have answered, and agree. It runs on the goroutine of its caller
// alone.
type Acts struct {
	Groups []*Client                // nil where acquires are not fenced
	Join   func(errs []error) error // one error of those of the groups
}

// Init gives the nodes of a new fleet their vote, or the nodes of groups added by a change.
func (a Acts) Init(ctx context.Context) error {
	views, err := a.views(ctx, "InitFencing", func(views []View) []fencing.Verdict {
		looks := make([]*fencing.Look, len(views))
		for i := range views {
			looks[i] = &views[i].Look
		}
		return fencing.Inits(looks, func(i int) bool { return a.Groups[i].cfg.IsNew })
	})
	if err != nil {
		return err
	}
	for i := range views {
		views[i].alone = !views[i].Knows()
	}
	return a.vote(ctx, views, order{isNew: true})
}

// Recover gives nodes their vote after too many have forgotten. atLeast is the largest token seen by the resources,
// and lost are nodes that never come back.
func (a Acts) Recover(ctx context.Context, atLeast fencing.Token, lost []string) error {
	if atLeast == 0 {
		return engine.WrongArgument("atLeast is 0: RecoverFencing needs the largest token that the resources have seen, and InitFencing is for a new fleet")
	}
	if atLeast > fencing.MaxToken-2*block {
		return engine.WrongArgument("atLeast is %d, which leaves no tokens below 2^53", atLeast)
	}
	o := order{atLeast: atLeast}
	views, err := a.views(ctx, "RecoverFencing", func(views []View) (all []fencing.Verdict) {
		o.stage = fencing.Begun
		for i := range views {
			v := &views[i]
			v.name(lost)
			all = append(all, v.Recovers())
			v.alone, o.stage = all[i] == fencing.Acts, max(o.stage, v.Memory.Stage())
		}
		return all
	})
	if err != nil {
		return err
	}
	return a.vote(ctx, views, o)
}

// patience is how many looks wait for nodes beyond a quorum, 100 ms apart.
const patience = 10

// views looks at all groups until none has to wait, and returns the views for the act to decide from.
func (a Acts) views(ctx context.Context, name string, check func([]View) []fencing.Verdict) ([]View, error) {
	if slices.Contains(a.Groups, nil) {
		return nil, fmt.Errorf("%w: %s needs Config.Fenced", engine.ErrConfig, name)
	}
	c := a.Groups[0]
	if _, err := c.micros(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for looks := 1; ; looks++ {
		views, errs := make([]View, len(a.Groups)), make([]error, len(a.Groups))
		for i, asked := range a.ask(fencing.ShowVerb, each()) {
			views[i] = a.Groups[i].view(asked)
			views[i].Patient = looks < patience
			errs[i] = views[i].refusal(views[i].Fits())
		}
		if engine.IsClosed(c.cfg.Ending) { // and nodes were not heard out for that
			return nil, engine.ErrClosed
		}
		if err := a.Join(errs); err != nil {
			return nil, err
		}
		verdicts := check(views)
		for i, v := range verdicts {
			errs[i] = views[i].refusal(v)
		}
		if err := a.Join(errs); err != nil {
			return nil, err
		}
		if !slices.Contains(verdicts, fencing.Waits) {
			return views, nil
		}
		if err := a.pause(ctx, fencing.MinPause, nil); err != nil {
			return nil, err
		}
	}
}

// pause waits for d, or until there is an answer. If ctx ends before, the error says why nodes have no vote.
func (a Acts) pause(ctx context.Context, d time.Duration, answers bell) error {
	select {
	case <-time.After(d):
		return nil
	case <-answers:
		return nil
	case <-ctx.Done():
		errs := make([]error, len(a.Groups))
		for i, c := range a.Groups {
			errs[i] = c.Votes()
		}
		return texts.NotReady(ctx, a.Join(errs))
	case <-a.Groups[0].cfg.Ending:
		return engine.ErrClosed
	}
}

// ask asks the nodes of all groups at once, and waits for all answers. args returns the arguments for a node of a
// group, and false for a node not to be asked.
func (a Acts) ask(verb fencing.Verb, args func(group, node int) ([]string, bool)) [][]*question {
	bell, all := newBell(), make([][]*question, len(a.Groups))
	var left []*question
	for i, c := range a.Groups {
		for node := range c.fleet.Nodes().All() {
			if list, is := args(i, node); is {
				all[i] = append(all[i], c.ask(node, bell.ring, verb, list...))
			}
		}
		left = append(left, all[i]...)
	}
	for {
		left = slices.DeleteFunc(left, (*question).take)
		if len(left) == 0 || !bell.await(a.Groups[0].cfg.Ending) {
			for _, x := range left {
				x.err = errNoAnswer // the client ends
			}
			return all
		}
	}
}

// each is args of ask with the same arguments for all nodes.
func each(args ...string) func(int, int) ([]string, bool) {
	return func(int, int) ([]string, bool) { return args, true }
}
