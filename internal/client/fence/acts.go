package fence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/rules/fencing"
)

// Acts is the acts of an operator, each on all groups of a client at once. An act looks at all nodes first. It writes
// to none of them before all the necessary ones have answered, and agree. It runs on the goroutine of its caller;
// votes are given by the housekeeper, by its orders.
type Acts struct {
	Groups []*Client
	Join   func(errs []error) error // one error of those of the groups
}

// Init gives the nodes of a new fleet their vote, or the nodes of groups added by a change.
func (a Acts) Init(ctx context.Context) error {
	views, err := a.views(ctx, act{name: "InitFencing", decide: fencing.Inits})
	if err != nil {
		return err
	}
	return a.vote(ctx, views, 0)
}

// Recover gives nodes their vote after too many have forgotten. atLeast is the largest token seen by the resources,
// and lost are nodes gone for good.
func (a Acts) Recover(ctx context.Context, atLeast fencing.Token, lost []string) error {
	if atLeast == 0 {
		return engine.WrongArgument("atLeast is 0: RecoverFencing needs the largest token that the resources have seen, and InitFencing is for a new fleet")
	}
	if atLeast > fencing.MaxToken-2*block {
		return engine.WrongArgument("atLeast is %d, which leaves no tokens below 2^53", atLeast)
	}
	lost, err := a.lost(lost)
	if err != nil {
		return err
	}
	views, err := a.views(ctx, act{name: "RecoverFencing", lost: lost, atLeast: atLeast, decide: apart((*fencing.Look).Recovers)})
	if err != nil {
		return err
	}
	return a.vote(ctx, views, atLeast)
}

// farBeyond is how much larger an operator's number may be than what nodes and the clock show: a day, in µs. A number
// with a wrong digit is larger, and what has been used cannot be taken back: with one near 2^53 no lock is granted again.
const farBeyond = fencing.Token(24 * 60 * 60 * 1e6)

// refuses refuses a number far beyond what nodes show.
func (a Acts) refuses(atLeast fencing.Token, views []view) error {
	now, _ := a.Groups[0].micros() // it was right when the act began
	shown := fencing.Token(0)
	for i := range views {
		shown = max(shown, views[i].Token)
	}
	if a.Groups[0].cfg.AnyToken || atLeast <= max(shown, fencing.Token(now))+farBeyond {
		return nil
	}
	return engine.WrongArgument("atLeast is %d, and nothing was changed: it is more than a day beyond the largest token that nodes show, %d, and this clock, %d. "+
		"Tokens are microseconds, and never get smaller again. If resources have seen this number, use redlock fence recover -force", atLeast, shown, now)
}

// act is what an operator has called.
type act struct {
	name    string
	lost    []string
	atLeast fencing.Token
	decide  func([]*fencing.Look) []fencing.Verdict
}

// apart has each group decided by its own look.
func apart(verdict func(*fencing.Look) fencing.Verdict) func([]*fencing.Look) []fencing.Verdict {
	return func(looks []*fencing.Look) (all []fencing.Verdict) {
		for _, l := range looks {
			all = append(all, verdict(l))
		}
		return all
	}
}

// patience is how many looks wait for nodes beyond a quorum, 100 ms apart.
const patience = 10

// views looks at all groups until none has to wait, and returns the views with their verdicts. A client that only looks
// takes part from the first look on that refuses nothing.
func (a Acts) views(ctx context.Context, act act) ([]view, error) {
	c := a.Groups[0]
	if !c.isFenced() {
		return nil, fmt.Errorf("%w: %s needs Config.Fenced", engine.ErrConfig, act.name)
	}
	if _, err := c.micros(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for looks := 1; ; looks++ {
		views, all, errs := make([]view, len(a.Groups)), make([]*fencing.Look, len(a.Groups)), make([]error, len(a.Groups))
		for i, asked := range a.ask(fencing.ShowVerb, each()) {
			views[i] = a.Groups[i].view(asked, act.lost)
			views[i].Patient = looks < patience
			all[i] = &views[i].Look
		}
		if engine.IsClosed(c.cfg.Ending) { // and nodes were not heard out for that
			return nil, engine.ErrClosed
		}
		waits := false
		for i, verdict := range act.decide(all) {
			v := &views[i]
			v.verdict = v.Fits()
			if v.verdict == fencing.Acts {
				v.verdict = verdict
			}
			errs[i], waits = v.refusal(), waits || v.verdict == fencing.Waits
		}
		if err := a.Join(errs); err != nil {
			return nil, err
		}
		if err := a.refuses(act.atLeast, views); err != nil {
			return nil, err
		}
		for _, c := range a.Groups {
			c.act()
		}
		if !waits {
			return views, nil
		}
		if err := a.pause(ctx, fencing.MinPause); err != nil {
			return nil, err
		}
	}
}

// pause waits for d. If ctx ends before, the error says why nodes have no vote.
func (a Acts) pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
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
	all := make([][]*question, len(a.Groups))
	for i, c := range a.Groups {
		for node := range c.fleet.Nodes().All() {
			if list, is := args(i, node); is {
				all[i] = append(all[i], c.ask(node, nil, verb, list...))
			}
		}
	}
	for i, asked := range all {
		for at, x := range asked {
			x.await()
			if verb == fencing.ShowVerb && errors.Is(x.err, conn.ErrEmptied) { // it was sent before that was known
				list, _ := args(i, x.node)
				asked[at] = a.Groups[i].ask(x.node, nil, verb, list...)
				asked[at].await()
			}
		}
	}
	return all
}

// each is args of ask with the same arguments for all nodes.
func each(args ...string) func(int, int) ([]string, bool) {
	return func(int, int) ([]string, bool) { return args, true }
}
