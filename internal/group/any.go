package group

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/holding"
	"github.com/redlock-go/redlock/internal/waiting"
	"github.com/redlock-go/redlock/quorum"
)

// Option is one of the keys of which a caller takes any. It has a second group while it moves.
type Option struct {
	Key           string
	Group, Second *Group
}

// groups is those that have the key.
func (o *Option) groups() []*Group {
	if o.Second == nil {
		return []*Group{o.Group}
	}
	return []*Group{o.Group, o.Second}
}

// state is that of an attempt on the key.
func (o *Option) state() holding.State {
	s := holding.State{Key: o.Key}
	if o.Second != nil {
		s.More = &holding.More{Keys: []string{o.Key, o.Key}, Sites: []holding.Site{o.Group, o.Second}}
	}
	return s
}

// choice is a call of AcquireAny. It never asks for more than one key at a time, so that no caller meets a key
// that another is about to give back.
type choice struct {
	home    *Group // of the first key
	ttl     time.Duration
	options []Option
	denied  []quorum.Set // by option: the nodes that have refused it last
}

// AcquireAny is Acquire for one of several keys, in their canonical order, whichever can be had first. With once a vote
// is taken on each.
func AcquireAny(ctx context.Context, ttl time.Duration, options []Option, once bool) (Handle, error) {
	ctx = orBackground(ctx)
	x := choice{home: options[0].Group, ttl: ttl, options: options, denied: make([]quorum.Set, len(options))}
	if err := x.check(); err != nil {
		return Handle{}, err
	}
	if err := ctx.Err(); err != nil {
		return Handle{}, err
	}
	return x.ask(ctx)
}

// check refuses wrong arguments, also those that none of the attempts would meet.
func (x *choice) check() error {
	for _, o := range x.options {
		c, err := o.Group.engine.Call(engine.Acquire, o.Key, x.ttl)
		if err != nil {
			return err
		}
		o.Group.engine.Free(c)
	}
	return nil
}

// anyTurn is where a client begins: each at another key.
func anyTurn() uint32 { return rand.Uint32() }

// order is the options in the order in which they are asked for: from another one each time, and those at the end that
// were seen taken. untaken is how many come before these.
func (x *choice) order() (order []int, untaken int) {
	n := len(x.options)
	var taken []int
	for first, i := int(x.home.turn.Add(1)), 0; i < n; i++ {
		at := (first + i) % n
		if _, seen := x.options[at].Group.lines.Look(x.options[at].Key); seen {
			taken = append(taken, at)
		} else {
			order = append(order, at)
		}
	}
	return append(order, taken...), len(order)
}

// ask asks for one key. If that is refused it looks at all others at once, and asks for those that are free, one after
// another. ErrTaken: a vote on each key has said so.
func (x *choice) ask(ctx context.Context) (Handle, error) {
	order, untaken := x.order()
	if untaken == 0 {
		x.home.reportUnsent(ctx, engine.Acquire, x.options[order[0]].Key, engine.ErrTaken)
		return Handle{}, engine.ErrTaken
	}
	var lost error
	var out []*Group // where an attempt ended without a denial: no other key there would fare better
	rest := order[:untaken]
	for asked := 0; len(rest) > 0; asked++ {
		at := rest[0]
		if rest = rest[1:]; slices.Contains(out, x.options[at].Group) {
			continue
		}
		h, err := x.attempt(ctx, at)
		switch {
		case err == nil || !waiting.IsRetryable(err):
			return h, err
		case err != engine.ErrTaken:
			lost, out = err, append(out, x.options[at].Group)
		}
		if asked == 0 {
			rest = x.look(ctx, rest)
		}
	}
	return Handle{}, cmp.Or(lost, engine.ErrTaken)
}

// attempt asks for one key.
func (x *choice) attempt(ctx context.Context, at int) (Handle, error) {
	g, s := x.options[at].Group, x.options[at].state()
	c, err := g.acquisition(ctx, &s, x.ttl)
	if err != nil {
		return Handle{}, err
	}
	defer c.Free()
	h, r, err := g.attempt(ctx, &c, &s, false)
	x.denied[at] = deniedBy(c.First())
	g.report(ctx, nil, h, r)
	return h, err
}

// look asks which of some keys an acquire would get, in one round trip that sets nothing. It returns those that
// nodes have not refused, the free ones first. What it does not learn is for the attempts to find out.
func (x *choice) look(ctx context.Context, of []int) (open []int) {
	if len(of) < 2 {
		return of
	}
	var all holding.More
	for _, at := range of {
		for _, g := range x.options[at].groups() {
			all.Keys, all.Sites = append(all.Keys, x.options[at].Key), append(all.Sites, g)
		}
	}
	c, err := newCalls(x.home, engine.Look, &holding.State{Key: all.Keys[0], More: &all}, 0, "")
	if err != nil {
		return of
	}
	defer c.Free()
	c.Watch(ctx)
	if c.together(ctx) != nil {
		return of
	}
	var unknown []int
	calls := c.all
	for _, at := range of {
		var seen error
		for range x.options[at].groups() {
			seen, calls = engine.Joint(seen, calls[0].Err), calls[1:]
		}
		switch seen {
		case nil:
			open = append(open, at)
		case engine.ErrTaken:
		default:
			unknown = append(unknown, at)
		}
	}
	return append(open, unknown...)
}
