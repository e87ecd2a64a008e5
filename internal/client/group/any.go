package group

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/client/waiting"
)

// Option is one of the keys of AcquireAny. It has a second group while it moves.
type Option struct {
	Key           string
	Group, Second *Group
}

// groups is the groups of the key.
func (o *Option) groups() []*Group {
	if o.Second == nil {
		return []*Group{o.Group}
	}
	return []*Group{o.Group, o.Second}
}

// state is the state of an attempt on the key.
func (o *Option) state() holding.State {
	s := holding.State{Key: o.Key}
	if o.Second != nil {
		s.More = &holding.More{Keys: []string{o.Key, o.Key}, Sites: []holding.Site{o.Group, o.Second}}
	}
	return s
}

// choice is a call of AcquireAny. It never asks for more than one key at a time: no caller meets a key which another
// is about to give back.
type choice struct {
	home    *Group // of the first key
	by      caller
	ttl     time.Duration
	options []Option
	found   []waiting.Ended // by option: the last attempt, or look
}

// AcquireAny is Acquire for one of several keys, in their canonical order, the first to be had. With once a vote is
// taken on each.
func AcquireAny(ctx context.Context, ttl time.Duration, options []Option, once bool) (Handle, error) {
	ctx = orBackground(ctx)
	x := choice{home: options[0].Group, ttl: ttl, options: options, found: make([]waiting.Ended, len(options))}
	t := x.home.lines.NewTries(options[0].Key)
	err := ctx.Err()
	switch {
	case err != nil && once:
		return Handle{}, err
	case err != nil:
		return Handle{}, x.home.cutOff(ctx, &t)
	}
	if err := x.check(); err != nil {
		return Handle{}, err
	}
	x.by = callerOf(ctx)
	if once {
		h, err := x.ask(ctx, (*Option).isTaken)
		return x.home.afterHooks(h, asked(ctx, err))
	}
	h, err := x.inLines(ctx, &t)
	if err = x.home.gaveUp(ctx, &t, err); err == nil {
		t.Key = h.key
	}
	return x.home.acquired(ctx, &t, h, err)
}

// inLines is AcquireAny after earlier callers for the same keys, or for each of them.
func (x *choice) inLines(ctx context.Context, t *waiting.Tries) (Handle, error) {
	g := x.home
	if !g.lines.IsChosen(x.keys) && slices.ContainsFunc(x.options, func(o Option) bool { return !o.isContended() }) {
		t.Attempts++
		h, err := x.ask(ctx, (*Option).isContended)
		if err == nil || !t.ShouldRetry(err) {
			return h, err
		}
	}
	t.Wait(false)
	w := waiting.Choose(waiting.NameOf(x.keys()), x.seats(), x.ttl)
	defer w.Leave()
	for {
		why, at, handed := w.Await(x.by.done, t)
		switch why {
		case waiting.MayAttempt:
		case waiting.Handed:
			o := &x.options[at]
			h := Handle{group: o.Group, hold: handed, key: o.Key}
			if err := h.accept(t); err != engine.ErrExpired {
				return g.unlessEnding(h, err)
			}
			w.StandAgain()
			continue
		default:
			return Handle{}, inVain(why)
		}
		t.Attempts++
		var h Handle
		var err error
		if at == waiting.Everywhere {
			h, err = x.ask(ctx, func(*Option) bool { return false })
		} else {
			h, err = x.attempt(ctx, at, w)
		}
		h, err = g.unlessEnding(h, err)
		if err == nil || !t.ShouldRetry(err) {
			w.Hear(t)
			return h, err
		}
		t.Wait(false)
		w.WaitOn()
	}
}

func (x *choice) keys() (keys []string) {
	for _, o := range x.options {
		keys = append(keys, o.Key)
	}
	return keys
}

// seats is the keys as package waiting needs them. A moving key is waited for in its first group, and a lock of two
// groups is not passed on.
func (x *choice) seats() (seats []waiting.Seat) {
	for i, o := range x.options {
		seats = append(seats, waiting.Seat{Lines: o.Group.lines, Key: o.Key, Whole: o.Second != nil, Last: x.found[i]})
	}
	return seats
}

// check refuses wrong arguments, also where no attempt would meet them.
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

// isTaken reports whether callers wait for the key, and it was seen to have a holder.
func (o *Option) isTaken() bool {
	_, taken := o.Group.lines.Look(o.Key)
	return taken
}

// isContended reports whether others want the key.
func (o *Option) isContended() bool { return o.Group.lines.IsContended(o.Key) }

// order is the options in the order of asking, from another one each time, without some.
func (x *choice) order(without func(*Option) bool) (order []int) {
	first := int(x.home.turn.Add(1))
	for i := range x.options {
		if at := (first + i) % len(x.options); !without(&x.options[at]) {
			order = append(order, at)
		}
	}
	return order
}

// ask asks for one key. If it is refused ask looks at all others at once, and asks for the free ones, one after
// another. ErrTaken: a vote on each key has said so, some keys left out.
func (x *choice) ask(ctx context.Context, without func(*Option) bool) (Handle, error) {
	rest := x.order(without)
	if len(rest) == 0 {
		x.home.reportUnsent(ctx, engine.Acquire, x.options[0].Key, engine.ErrTaken)
		return Handle{}, engine.ErrTaken
	}
	var lost error
	var out []*Group // where an attempt ended without a denial: no other key there would fare better
	for asked := 0; len(rest) > 0; asked++ {
		at := rest[0]
		rest = rest[1:]
		if slices.Contains(out, x.options[at].Group) {
			continue
		}
		h, err := x.attempt(ctx, at, nil)
		switch {
		case err == nil || !waiting.IsRetryable(err):
			return h, err
		case err != engine.ErrTaken:
			lost, out = err, append(out, x.options[at].Group)
		}
		if asked == 0 {
			rest = x.look(rest)
		}
	}
	return Handle{}, cmp.Or(lost, engine.ErrTaken)
}

// attempt asks for one key, in the turn, if any, of a caller in line.
func (x *choice) attempt(ctx context.Context, at int, turn *waiting.Chooser) (Handle, error) {
	g, s := x.options[at].Group, x.options[at].state()
	c, err := g.acquisition(x.by, &s, x.ttl, nil)
	if err != nil {
		return Handle{}, err
	}
	defer c.Free()
	h, r, err := g.attempt(&c, &s, false)
	x.found[at] = waiting.Ended{At: g.clock.Now(), Err: err, Denied: deniedBy(c.First())}
	if turn != nil {
		turn.Attempted(h.hold, x.found[at].Denied, err)
	}
	g.report(ctx, h, r)
	return h, err
}

// look asks which of some keys an acquire would get, in one round trip that sets nothing. It returns the keys not
// refused by nodes, the free ones first. What it does not learn is for the attempts to find out.
func (x *choice) look(of []int) (open []int) {
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
	c.Watch(x.by.done)
	if c.AskAll() != nil {
		return of
	}
	var unknown []int
	calls := c.Parts()
	for _, at := range of {
		first, seen := calls[0], error(nil)
		for range x.options[at].groups() {
			seen, calls = engine.Joint(seen, calls[0].Err), calls[1:]
		}
		switch seen {
		case nil:
			open = append(open, at)
		case engine.ErrTaken:
			x.found[at] = waiting.Ended{At: x.home.clock.Now(), Err: seen, Denied: deniedBy(first.Call)}
		default:
			unknown = append(unknown, at)
		}
	}
	return append(open, unknown...)
}
