package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/client/waiting"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/rules/renewal"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

// option is a lock that would do: on one key, on a moving key in both its groups, or on several keys. The site, that of the
// first key, counts it and keeps it alive.
type option struct {
	site *site
	Key  string
	More *holding.More // several keys, in their canonical order, or a moving one; or nil

	shared bool // others may hold it too
}

// want is a call that wants any of some options, the first to be had; one is the rule. It never asks for more than one
// at a time: no caller meets a key which another is about to give back.
type want struct {
	*site // of the first option: it counts and reports the call
	request
	by       caller
	ttl      time.Duration
	one      [1]option // the rule, on the stack
	several  []option
	last     [1]waiting.Ended
	lasts    []waiting.Ended
	isSet    bool // the only option has several keys
	collects bool // the only option is a key of a set that takes them one by one
	t        waiting.Tries

	at    int // the option of c and s
	c     *engine.Call
	s     holding.State
	ended bool // the first attempt was made already, and has ended without a lock
}

// options is the options, and found how the last attempts on them ended.
func (w *want) options() []option {
	if w.several != nil {
		return w.several
	}
	return w.one[:]
}

func (w *want) found(at int) *waiting.Ended {
	if w.lasts != nil {
		return &w.lasts[at]
	}
	return &w.last[at]
}

// Acquire makes attempts to acquire the lock on a key, in line with others for it, until one wins, one fails for a
// lasting reason, they are used up, or its limit is over. With Once it makes one attempt, and none beside waiters of this
// process whose last one, at most a second ago, was denied.
func (g *site) Acquire(ctx context.Context, key string, ttl time.Duration, r request) (Handle, error) {
	ctx = orBackground(ctx)
	if ctx.Err() != nil || r.err != nil || !g.isPlain() || r.term.isFixed() || token.TailFrom(ctx) != "" {
		return g.acquire(ctx, key, ttl, r, nil)
	}
	h, ended, err := g.plainly(ctx, key, ttl, r)
	if ended == nil {
		return h, err
	}
	return g.acquire(ctx, key, ttl, r, ended)
}

// acquire is Acquire of a lock not plain. ended is the first attempt if it was made: it has ended without a lock.
func (g *site) acquire(ctx context.Context, key string, ttl time.Duration, r request, ended *engine.Call) (Handle, error) {
	w := want{site: g, request: r, ttl: ttl, one: [1]option{{site: g, Key: key, shared: r.IsShared()}}}
	return w.acquire(ctx, ended)
}

// acquireAny is Acquire for one of several options, the first to be had. With once a vote is taken on each.
func acquireAny(ctx context.Context, ttl time.Duration, options []option, r request) (Handle, error) {
	for i, o := range options { // the first is checked by its call
		if i > 0 {
			c, err := o.site.engine.Call(engine.Acquire, o.Key, ttl)
			if err != nil {
				return Handle{}, err
			}
			c.Free()
		}
	}
	w := want{site: options[0].site, request: r, ttl: ttl, several: options, lasts: make([]waiting.Ended, len(options))}
	return w.acquire(orBackground(ctx), nil)
}

// acquireSet is Acquire for several keys as one lock.
func (g *site) acquireSet(ctx context.Context, more *holding.More, ttl time.Duration, r request) (Handle, error) {
	w := want{site: g, request: r, ttl: ttl, one: [1]option{{g, more.Keys[0], more, r.IsShared()}}, isSet: true}
	return w.acquire(orBackground(ctx), nil)
}

func (w *want) acquire(ctx context.Context, ended *engine.Call) (h Handle, err error) {
	if w.err != nil {
		return Handle{}, w.err
	}
	w.t = w.lines.NewTries(w.options()[0].Key, w.Attempts)
	if ended != nil { // what it was granted too late is released before ctx is asked, which may panic
		w.t.Began = w.t.Began.Add(-ended.Took(w.t.Began))
		w.by, w.ended = caller{ended.Watched(), w.more}, true
	} else if err := ctx.Err(); err != nil { // it is not reported: there was no attempt
		if w.IsOnce() {
			return Handle{}, err
		}
		return Handle{}, w.cutOff(ctx, &w.t)
	} else {
		w.by = w.callerOf(ctx)
	}
	if w.c, w.s, err = w.acquisition(0, ended); err != nil {
		return Handle{}, err
	}
	defer func() { w.c.Free() }()
	if w.IsOnce() {
		h, err = w.ask(ctx)
		return w.afterHooks(h, asked(ctx, err))
	}
	h, err = w.inLines(ctx)
	err = w.gaveUp(ctx, err)
	if err == nil {
		w.t.Key = h.key
	}
	return w.acquired(ctx, &w.t, h, err)
}

// caller is what a call needs to know of its context. That is user code, and may block: it is asked before its caller
// stands in a line, and after it has left.
type caller struct {
	limit engine.Limit
	more  *holding.More // of a lock with another name than the client's, or with the value of a front end; or nil
}

func (w *want) callerOf(ctx context.Context) caller {
	by := caller{w.limit(w.site, ctx.Done()), w.more}
	if tail := token.TailFrom(ctx); tail != "" {
		by.more = &holding.More{HasTail: true, Tail: tail}
	}
	return by
}

// limit is the limit of a call that begins now, with a context.
func (r *request) limit(g *site, done <-chan struct{}) engine.Limit {
	l := engine.Limit{Done: done}
	if r.Wait > 0 && !r.IsOnce() {
		l.At = g.clock.Now().Add(r.Wait)
	}
	return l
}

// watch has a limit end calls.
func watch(calls *engine.Call, l engine.Limit) {
	calls.Each(func(c *engine.Call) { c.Watch(l) })
}

// acquisition returns the calls for the attempts to get the lock of an option, to be freed. The first may have ended already.
func (w *want) acquisition(at int, ended *engine.Call) (c *engine.Call, s holding.State, err error) {
	o, own := &w.options()[at], w.by.more
	s = holding.State{Key: o.Key, More: o.More, Held: renewal.Held{TTL: w.ttl.Truncate(time.Millisecond)}, Shared: o.shared, Waits: !w.IsOnce()}
	switch {
	case own != nil && o.More != nil:
		s.More.HasTail, s.More.Tail = true, own.Tail
	case own != nil:
		s.More = own
	}
	if ended != nil {
		return ended, s, nil
	}
	c, err = s.Calls(o.site.engine, engine.Acquire, w.term.ttl(o, w.ttl), o.site.cfg.Tail)
	if err != nil {
		return nil, s, err
	}
	watch(c, w.by.limit)
	c.Each(func(c *engine.Call) { c.Denied = w.term.deniedBy() })
	return c, s, nil
}

// inLines is Acquire after the callers and the processes already waiting for its keys.
func (w *want) inLines(ctx context.Context) (Handle, error) {
	t := &w.t
	if w.ended || w.collects || slices.ContainsFunc(w.options(), func(o option) bool { return !o.isContended() }) {
		t.Attempts++
		h, err := w.ask(ctx)
		if err == nil || !w.shouldRetry(err) {
			return h, err
		}
	}
	d := w.stand()
	defer func() { d.Leave() }()
	for patience := w.patience(); ; {
		t.Wait(w.collects || w.isSet && (!d.Stands() || t.IsLimited()))
		t.NoLater(patience.until)
		why, at, handed := d.Await(w.by.limit, t)
		switch why {
		case waiting.MayAttempt, waiting.Sent:
		case waiting.Handed:
			o := &w.options()[at]
			h := Handle{group: o.site, hold: handed, key: o.Key}
			if err := h.accept(t); err != engine.ErrExpired {
				return w.unlessEnding(h, err)
			}
			d.Leave()
			d = w.stand()
			continue
		default:
			return Handle{}, inVain(why)
		}
		t.Attempts++
		h, r, err := w.attempt(at, why == waiting.Sent)
		h, err = w.unlessEnding(h, err)
		goesOn := w.shouldRetry(err)
		if err != nil && !goesOn {
			d.Hear(t)
		}
		w.note(d, h, at, err, goesOn, r == nil)
		w.report(ctx, h, r)
		if !goesOn {
			return h, err
		}
		if errors.Is(err, engine.ErrTaken) && patience.isOver(w.clock.Now(), d) {
			d.Leave()
			d = nil
			if h, err = w.collect(ctx, &patience); err == nil || !t.ShouldRetry(err) {
				return h, err
			}
			d = w.stand()
		}
	}
}

// note notes in the lines how an attempt on an option has ended. A caller without a hook to call rests at once.
func (w *want) note(d *waiting.Demand, h Handle, at int, err error, goesOn, rests bool) {
	switch {
	case !w.isSet:
		d.Attempted(h.hold, w.found(at).Denied, err, goesOn && rests)
	case !errors.Is(err, engine.ErrTaken) || !goesOn: // it has won; or no holder has refused it, and it stands before others in no line
		d.Left(h.hold)
	case !d.Missed(w.deniedAt, rests): // it waits for no turn, and stands again where it was refused
		for at, key := range w.s.More.Keys {
			if denied := w.deniedAt(at); denied != 0 && !d.StandsAt(at) {
				d.Join(at, waiting.Seat{Lines: w.site.at(w.s.More, at).lines, Key: key, Share: w.options()[0].shared, Last: waiting.Ended{At: w.clock.Now(), Err: err, Denied: denied}})
			}
		}
	}
}

// stand has the caller stand in line: for each option, at its first key; for a set at each key that was refused, or, if
// it has not asked, is contended.
func (w *want) stand() *waiting.Demand {
	w.t.Wait(false)
	if !w.isSet {
		var room [1]waiting.Seat // on the stack of the caller of one key
		seats := room[:0]
		for at, o := range w.options() {
			seat := waiting.Seat{Lines: o.site.lines, Key: o.Key, Share: o.shared, Last: *w.found(at)}
			if o.More == nil && !o.shared && !w.term.isFixed() { // it does not move, and ends with its TTL
				seat.Wants = waiting.Passable{TTL: w.s.TTL, More: w.by.more}
			}
			if !o.site.lines.CanBeWoken() && !w.t.IsLimited() {
				seat.Last.Denied = 0 // it asks again at once, in case of a release before it is in line
			}
			seats = append(seats, seat)
		}
		var call *engine.Call
		if len(seats) == 1 {
			call = w.c
		}
		return w.lines.Stand(false, call, seats...)
	}
	seats := make([]waiting.Seat, len(w.s.More.Keys))
	for at, key := range w.s.More.Keys {
		lines, denied := w.site.at(w.s.More, at).lines, w.deniedAt(at)
		if denied != 0 || w.t.Attempts == 0 && lines.IsContended(key) {
			seats[at] = waiting.Seat{Lines: lines, Key: key, Share: w.options()[0].shared, Last: waiting.Ended{At: w.found(0).At, Err: w.found(0).Err, Denied: denied}}
		}
	}
	return w.lines.Stand(true, nil, seats...)
}

// deniedAt is the nodes that have refused a key of a set in the last attempt.
func (w *want) deniedAt(at int) quorum.Set { return deniedBy(refused(w.c, at)) }

// attempt is one attempt on an option.
func (w *want) attempt(at int, sent bool) (h Handle, r *reports, err error) {
	if w.at != at {
		c, s, err := w.acquisition(at, nil)
		if err != nil {
			return Handle{}, nil, err
		}
		w.c.Free()
		w.c, w.s, w.at = c, s, at
	}
	h, r, err = w.options()[at].site.attempt(w.c, &w.s, w.term, sent)
	last := w.found(at)
	last.Err, last.Denied = err, deniedBy(w.c) // also of a lock that was won
	if err != nil {
		last.At = w.clock.Now()
		w.t.Ended = last.At
	}
	return h, r, err
}

// attempt is one attempt, with one new token for all keys. If one key is refused, the others are released. If it was
// sent along with a release, only its end is awaited. If nodes have refused nothing but the number of a fencing
// token, it is made again at once, and if votes are split, after a pause. Where it has met the end of idle connections it
// is made again at once, and once: its release is on its way before. The caller reports the attempts to the hook, after
// it has let others act. The error is context.Canceled where the end of the caller's context has ended it.
func (g *site) attempt(c *engine.Call, s *holding.State, t *term, sent bool) (h Handle, r *reports, err error) {
	counted := s.Several() != nil || g.HasHooks()
	splits, idleEnds := 0, 0
	for again := true; again; sent = false {
		var by *engine.Call
		if sent {
			by, err = c.Sent()
		} else {
			f, failed := g.fresh(proposal(c))
			if failed != nil {
				return Handle{}, r, failed
			}
			c.About(f.token, f.block, 0)
			if counted {
				g.cfg.Underway.Enter()
			}
			by, err = c.Do()
		}
		s.Until = c.Least()
		if err == nil && t.isLate(c, s.Until, g.clock.Now()) { // this goroutine may have waited long to run again
			err = engine.ErrExpired
		}
		if err == nil && !stands(c) {
			err = engine.ErrTaken
		}
		c.Note(err)
		if err == nil {
			s.Serial, s.Token = c.Serial, c.Token
			h = g.begin(s, c.Lacking(), c.Block.First)
			h.granted()
			granted(c)
			t.won(g, splits, c.LongestTrip())
		} else {
			c.Rollback(err)
		}
		if counted && !sent {
			g.cfg.Underway.Leave()
		}
		idle := err == engine.ErrNoQuorum && idleEnds == 0 && metIdleEnd(c)
		if again, err = siteOf(by.On).fence.Again(c, err); !again || g.cfg.OnAttempt != nil {
			err = by.Explain(err)
		}
		if g.cfg.OnAttempt != nil {
			r = r.with(report{s.Key, by.Took(g.clock.Now()), by.Tally, err})
		}
		if err == engine.ErrSplit {
			if splits == waiting.MaxSplits {
				return h, r, engine.ErrTaken // each round had a vote for another
			}
			if ended := g.awaitSplit(by, splits); ended != nil {
				return h, r, ended
			}
			splits, again = splits+1, true
		}
		if idle {
			idleEnds, again = 1, true
		}
	}
	return h, r, err
}

// fresh is what each attempt to acquire has anew.
type fresh struct {
	token token.Token
	block fencing.Block // where acquires are fenced
}

// proposal is what a fenced acquire has proposed before; nil of a shared lock, which has no fencing token.
func proposal(c *engine.Call) *fencing.Proposal {
	if c.Shared {
		return nil
	}
	return &c.Proposal
}

// fresh makes the fresh parts of the next attempt. Rand and FenceClock are user code, and may panic.
func (g *site) fresh(p *fencing.Proposal) (f fresh, err error) {
	if err := f.token.Fill(g.cfg.Rand); err != nil {
		return fresh{}, fmt.Errorf("redlock: %w", err)
	}
	if p != nil {
		err = g.fence.Propose(&f.block, p)
	}
	return f, err
}

// acquired counts and reports how an Acquire went. If the hook panics, the caller gets no
// handle, and the lock is released.
func (g *site) acquired(ctx context.Context, t *waiting.Tries, h Handle, err error) (Handle, error) {
	if t.Waited {
		switch {
		case err == nil && t.End != waiting.HandedOver:
			t.End = waiting.Granted
		case err == engine.ErrClosed:
			t.End = waiting.ClientClosed
		}
		g.lines.CountWait(t)
	}
	if f := g.cfg.OnAcquire; f != nil {
		reported := false
		defer func() {
			if !reported && err == nil {
				h.drop()
			}
		}()
		hook(ctx, func(ctx context.Context) {
			f(ctx, t.Key, t.Attempts, g.clock.Now().Sub(t.Began), t.End == waiting.HandedOver, err)
		})
		reported = true
	}
	return g.afterHooks(h, err)
}

// gaveUp is the error of an Acquire that has left its lines. err ended its last attempt or wait.
func (w *want) gaveUp(ctx context.Context, err error) error {
	limit := engine.Limit{At: w.by.limit.At}
	switch {
	case err != nil && w.t.End == waiting.Exhausted: // also if ctx has ended since
	case err == nil || err == engine.ErrClosed:
		return err
	case ctx.Err() != nil:
		return w.cutOff(ctx, &w.t)
	case err != context.Canceled:
		return err
	case !limit.IsOver(w.clock.Now()): // it is a context without an error
		return w.cutOff(ctx, &w.t)
	}
	w.t.End = waiting.Exhausted
	return w.acquireError(&w.t, nil)
}

// inVain is the error of a wait, for gaveUp.
func inVain(why waiting.Reason) error {
	if why == waiting.Closed {
		return engine.ErrClosed
	}
	return context.Canceled
}

// cutOff is the error of an Acquire when its context has ended.
func (g *site) cutOff(ctx context.Context, t *waiting.Tries) error {
	t.End = waiting.GaveUp
	return g.acquireError(t, texts.EndOf(ctx))
}

func (g *site) acquireError(t *waiting.Tries, ended error) error {
	return g.cfg.AcquireError(t.Key, t.Attempts, g.clock.Now().Sub(t.Began), t.Last, ended)
}

// deniedBy is the nodes that denied an acquire, or none for nil.
func deniedBy(c *engine.Call) (denied quorum.Set) {
	if c == nil {
		return 0
	}
	return c.Tally.Nodes(quorum.Denied)
}

// accept ends the tries by a lock passed on to their caller. It releases a lock whose validity is over: the caller's
// goroutine has waited long to run again.
func (h Handle) accept(t *waiting.Tries) error {
	if h.Remaining() > 0 {
		h.granted()
		t.End = waiting.HandedOver
		return nil
	}
	h.ReleaseAsync()
	t.Hear(h.group.clock.Now(), engine.ErrExpired)
	return engine.ErrExpired
}

// unlessEnding gives a lock back that a waiting caller has got while the client ends. The end waits for callers in
// lines: so the release is sent, where one by the user might come too late.
func (g *site) unlessEnding(h Handle, err error) (Handle, error) {
	if err != nil || !engine.IsClosed(g.ending) {
		return h, err
	}
	h.drop()
	return Handle{}, engine.ErrClosed
}
