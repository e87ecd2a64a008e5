package client

import (
	"cmp"
	"errors"
	"slices"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/client/waiting"
	"github.com/redlock-go/redlock/quorum"
)

// isContended reports whether others want a key of an option.
func (o *option) isContended() (is bool) {
	o.site.eachKey(o.Key, o.More, func(g *site, key string) { is = is || g.lines.IsContended(key) })
	return is
}

// passesOver reports whether an option is left out for now. With once, this is an option in demand that was seen to
// have a holder. Else it is any option in demand.
func (w *want) passesOver(o *option) bool {
	switch {
	case w.stage != anew: // it was asked for; or a gap is free for it
		return false
	case w.Mode&Once == 0:
		return o.isContended()
	case w.isSet(), w.Mode&Shared != 0: // whether it has a holder says nothing to others that share it
		return false
	}
	_, taken := o.site.lines.Awaits(o.Key)
	return taken
}

// order appends the options in the order of asking, from another one each time.
func (w *want) order(order []int) []int {
	first := 0
	if len(w.options) > 1 {
		first = int(w.turn.Add(1))
	}
	for i := range w.options {
		at := (first + i) % len(w.options)
		if !w.passesOver(&w.options[at]) {
			order = append(order, at)
		}
	}
	return order
}

// ask asks for one option. If it is denied ask looks at all others at once, and asks for the free ones, one after
// another. ErrTaken: a vote on each has said so, some left out.
func (w *want) ask() (Handle, error) {
	var room [1]int // on the stack of a caller with one option
	rest := w.order(room[:0])
	if len(rest) == 0 {
		w.reportUnsent(w.ctx, engine.Acquire, w.options[0].Key, engine.ErrTaken)
		return Handle{}, engine.ErrTaken
	}
	var lost, last error
	var out []*site // where an attempt ended without a denial: no other key there would fare better
	for asked := 0; len(rest) > 0; asked++ {
		at := rest[0]
		rest = rest[1:]
		if slices.Contains(out, w.options[at].site) {
			continue
		}
		h, err := w.attempt(at, w.stage == goesOn)
		last = err
		if w.stage == goesOn {
			w.stage = anew
		}
		switch {
		case err == nil || !waiting.IsRetryable(err):
			return h, err
		case !errors.Is(err, engine.ErrTaken):
			lost, out = err, append(out, w.options[at].site)
		}
		if asked == 0 {
			rest = w.look(rest)
		}
	}
	return Handle{}, cmp.Or(lost, last)
}

// look asks which of some options an acquire would get, in one round trip that sets nothing. It returns those not
// denied by nodes, the free ones first. What it does not learn is for the attempts to find out.
func (w *want) look(of []int) (open []int) {
	if len(of) < 2 {
		return of
	}
	var all holding.More
	for _, at := range of {
		o := &w.options[at]
		o.site.eachKey(o.Key, o.More, func(g *site, key string) { all.Keys, all.On = append(all.Keys, key), append(all.On, g.Engine) })
	}
	s := holding.State{More: &all}
	looks, err := s.Calls(w.Engine, engine.Look, 0, "")
	if err != nil {
		return of
	}
	defer looks.Free()
	looks.Watch(w.limit)
	if looks.AskAll() != nil {
		return of
	}
	var unknown []int
	next := looks
	for _, at := range of {
		o, first, seen := &w.options[at], next, error(nil)
		o.site.eachKey(o.Key, o.More, func(*site, string) { seen, next = engine.Joint(seen, next.Err), next.And })
		switch seen {
		case nil:
			open = append(open, at)
		case engine.ErrTaken:
			o.last = waiting.Ended{At: w.clock.Now(), Err: seen, Denied: first.Tally.Nodes(quorum.Denied)}
		default:
			unknown = append(unknown, at)
		}
	}
	return append(open, unknown...)
}

// lookInTurn looks whether the lock of an option is free, for all of its line. An error ends the call.
func (w *want) lookInTurn(at int) error {
	o := &w.options[at]
	c, err := o.site.Engine.Call(engine.Look, o.Key, 0)
	if err != nil {
		return err
	}
	defer c.Free()
	c.Watch(w.limit)
	by, err := c.Do()
	if err == engine.ErrSplit { // it is just given or taken
		err = nil
	}
	if err != nil {
		err = by.Explain(err)
		o.last = waiting.Ended{At: w.clock.Now(), Err: err, Denied: c.Tally.Nodes(quorum.Denied)}
		w.t.Ended = o.last.At
	}
	goesOn := err == nil || w.shouldRetry(err)
	if !goesOn {
		w.in.Hear(&w.t)
	}
	w.in.Looked(err, goesOn)
	if goesOn {
		return nil
	}
	return err
}
