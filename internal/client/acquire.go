package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/group"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/client/waiting"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/rules/renewal"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

// want is one call to acquire. It has options, one as a rule, and takes the first lock to be had. It never asks for more
// than one at a time: no caller meets a key which another is about to give back. It is used again, so a caller that waits
// has none of it on its stack.
type want struct {
	*site // of the first option: it counts and reports the call
	request
	ttl      time.Duration
	options  []option
	isSet    bool // the only option has several keys
	collects bool // the only option is a key of a set that takes them one by one
	t        waiting.Tries

	// What it knows of its context. That is user code, and may block: it is asked before its caller stands in a line, and
	// after it has left.
	limit engine.Limit
	own   *holding.More // of a lock with another name than the client's, or with the value of a front end; or nil

	ctx   context.Context // for hooks
	in    *waiting.Demand // where it stands in line; or nil
	at    int             // the option of c and s
	c     *engine.Call
	s     holding.State
	ended bool // the first attempt was made already, and has ended without a lock
}

var wants = sync.Pool{New: func() any { return new(want) }}

// newWant returns a want without options, to be given to free.
func newWant(g *site, ttl time.Duration, r request) *want {
	w := wants.Get().(*want)
	w.site, w.request, w.ttl = g, r, ttl
	return w
}

func (w *want) free() {
	w.c.Free()
	clear(w.options)
	*w = want{options: w.options[:0]}
	wants.Put(w)
}

// acquire makes attempts to acquire the lock on a key, in line with others for it, until one wins, one fails for a
// lasting reason, they are used up, or its limit is over. With Once it makes one attempt, and none beside waiters of this
// process whose last one, at most a second ago, was denied.
func (c *Client) acquire(ctx context.Context, key string, ttl time.Duration, r request) (h Handle, err error) {
	g, second := c.of(key)
	if second != nil {
		return c.acquireSeveral(ctx, ttl, []string{key}, r)
	}
	ctx = orBackground(ctx)
	var ended *engine.Call // the first attempt, if it was made and has ended without a lock
	if r.err == nil && g.plain && !g.lines.IsContended(key) && !r.term.isFixed() && ctx.Err() == nil && token.TailFrom(ctx) == "" {
		if h, ended, err = g.plainly(ctx, key, ttl, r); ended == nil {
			return h, err
		}
	}
	w := newWant(g, ttl, r)
	w.options = append(w.options, option{site: g, Key: key})
	return w.acquire(ctx, ended)
}

func (w *want) acquire(ctx context.Context, ended *engine.Call) (h Handle, err error) {
	defer w.free()
	if w.err != nil {
		return Handle{}, w.err
	}
	w.ctx = ctx
	w.t = w.lines.NewTries(w.options[0].Key, w.Attempts)
	w.isSet = len(w.options) == 1 && w.options[0].More != nil
	w.own = w.more
	if ended != nil { // what it was granted too late is released before ctx is asked, which may panic
		w.t.Began = w.t.Began.Add(-ended.Took(w.t.Began))
		w.limit, w.ended = ended.Watched(), true
	} else if err := ctx.Err(); err != nil { // it is not reported: there was no attempt
		if w.Mode&Once != 0 {
			return Handle{}, err
		}
		return Handle{}, w.gaveUp(ctx, err)
	} else {
		w.limit = w.limitOf(w.site, ctx.Done())
		if tail := token.TailFrom(ctx); tail != "" {
			w.own = &holding.More{HasTail: true, Tail: tail}
		}
	}
	if err = w.choose(0, ended); err != nil {
		return Handle{}, err
	}
	if w.Mode&Once != 0 {
		h, err = w.ask()
		err = engine.Asked(ctx, err)
	} else {
		h, err = w.inLines()
		err = w.gaveUp(ctx, err)
		w.acquired(h, err)
	}
	return h, err
}

// limitOf is the limit of a call that begins now, with a context.
func (r *request) limitOf(g *site, done <-chan struct{}) engine.Limit {
	l := engine.Limit{Done: done}
	if r.Wait > 0 && r.Mode&Once == 0 {
		l.At = g.clock.Now().Add(r.Wait)
	}
	return l
}

// choose makes the calls for the attempts to get the lock of an option. The first may have ended already.
func (w *want) choose(at int, ended *engine.Call) (err error) {
	o := &w.options[at]
	s := holding.State{Key: o.Key, More: o.More, Held: renewal.Held{TTL: w.ttl.Truncate(time.Millisecond)}, Turn: holding.Turn{Wanted: w.t.Began, Shared: w.Mode&Shared != 0, Waits: w.Mode&Once == 0, OfAny: len(w.options) > 1}}
	switch {
	case w.own != nil && o.More != nil:
		s.More.HasTail, s.More.Tail = true, w.own.Tail
	case w.own != nil:
		s.More = w.own
	}
	c := ended
	if c == nil {
		if c, err = s.Calls(o.site.Engine, engine.Acquire, w.ttl, o.site.Config.Tail); err != nil {
			return err
		}
		c.Watch(w.limit)
		c.Each(func(c *engine.Call) {
			c.Denied = w.denied
			w.term.lengthen(c, o)
		})
	}
	w.c.Free()
	w.c, w.s, w.at = c, s, at
	return nil
}

// inLines is Acquire after the callers and the processes already waiting for its keys.
func (w *want) inLines() (Handle, error) {
	t := &w.t
	if w.ended || w.collects || slices.ContainsFunc(w.options, func(o option) bool { return !o.isContended() }) {
		t.Attempts++
		h, err := w.ask()
		if err == nil || !w.shouldRetry(err) {
			return h, err
		}
	}
	w.in = w.stand()
	defer func() { w.in.Leave() }()
	for patience := w.patience(); ; {
		t.Wait(w.collects || w.isSet && (!w.in.Stands() || t.IsLimited()), patience.until)
		why, at, handed := w.in.Await(w.limit, t)
		switch why {
		case waiting.MayAttempt, waiting.Sent:
		case waiting.MayLook:
			if t.IsLimited() || w.Mode&Shared != 0 { // each attempt counts; whether the lock has a holder says nothing to those who share it
				break
			}
			if err := w.lookInTurn(at); err != nil {
				return Handle{}, err
			}
			continue
		case waiting.Handed:
			o := &w.options[at]
			h := handleOf(o.site, handed, o.Key, nil)
			if h.Remaining() > 0 {
				t.End = waiting.HandedOver
				return w.unlessEnding(h, nil)
			}
			h.ReleaseAsync() // the caller's goroutine has waited long to run again
			t.Hear(w.clock.Now(), engine.ErrExpired)
			w.in.Leave()
			w.in = w.stand()
			continue
		case waiting.Closed:
			return Handle{}, engine.ErrClosed
		default:
			return Handle{}, context.Canceled // for gaveUp
		}
		t.Attempts++
		h, err := w.unlessEnding(w.attempt(at, why == waiting.Sent))
		goesOn := w.shouldRetry(err)
		if err != nil && !goesOn {
			w.in.Hear(t)
		}
		w.note(w.in, h, at, err, goesOn)
		if !goesOn {
			return h, err
		}
		if errors.Is(err, engine.ErrTaken) && w.clock.Now() >= patience.until && w.in.MayCollect() {
			w.in.Leave()
			w.in = nil
			if h, err = w.collect(&patience); err == nil || !t.ShouldRetry(err) {
				return h, err
			}
			w.in = w.stand()
		}
	}
}

// note notes in the lines how an attempt on an option has ended. Its caller rests at once.
func (w *want) note(d *waiting.Demand, h Handle, at int, err error, goesOn bool) {
	switch {
	case !w.isSet:
		d.Attempted(h.hold, w.c.Tally, err, goesOn)
	case !errors.Is(err, engine.ErrTaken) || !goesOn: // it has won; or no holder has refused it, and it stands before others in no line
		d.Left(h.hold)
	case !d.Missed(w.deniedAt): // it waits for no turn, and stands again where it was refused
		for at := range w.s.More.Keys {
			if w.deniedAt(at) != 0 {
				d.Join(at, w.seatOf(at, waiting.Ended{At: w.clock.Now(), Err: err}))
			}
		}
	}
}

// stand has the caller stand in line: for each option, at its first key; for a set at each key that was refused, or, if
// it has not asked, is contended.
func (w *want) stand() *waiting.Demand {
	if w.isSet {
		seats := make([]waiting.Seat, len(w.s.More.Keys))
		for at, key := range w.s.More.Keys {
			if w.deniedAt(at) != 0 || w.t.Attempts == 0 && w.site.at(w.s.More, at).lines.IsContended(key) {
				seats[at] = w.seatOf(at, w.options[0].last)
			}
		}
		return w.lines.Stand(true, nil, seats...)
	}
	var room [1]waiting.Seat // on the stack of the caller of one key
	seats := room[:0]
	for i := range w.options {
		o := &w.options[i]
		seat := waiting.Seat{Lines: o.site.lines, Key: o.Key, Share: w.Mode&Shared != 0, Last: o.last}
		if o.More == nil && w.Mode&Shared == 0 && !w.term.isFixed() { // it does not move, and ends with its TTL
			seat.Wants = waiting.Passable{TTL: w.s.TTL, More: w.own}
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

// seatOf is where a set waits for one of its keys, after an attempt.
func (w *want) seatOf(at int, last waiting.Ended) waiting.Seat {
	last.Denied = w.deniedAt(at)
	return waiting.Seat{Lines: w.site.at(w.s.More, at).lines, Key: w.s.More.Keys[at], Share: w.Mode&Shared != 0, Last: last}
}

// deniedAt returns the nodes that have refused a key of a set in the last attempt.
func (w *want) deniedAt(at int) quorum.Set {
	if c := refused(w.c, at); c != nil {
		return c.Tally.Nodes(quorum.Denied)
	}
	return 0
}

// attempt is one attempt on an option.
func (w *want) attempt(at int, sent bool) (h Handle, err error) {
	if w.at != at {
		if err := w.choose(at, nil); err != nil {
			return Handle{}, err
		}
	}
	o := &w.options[at]
	h, err = w.attemptAt(o.site, sent)
	o.last.Err, o.last.Denied = err, w.c.Tally.Nodes(quorum.Denied) // also of a lock that was won
	if err != nil {
		o.last.At = w.clock.Now()
		w.t.Ended = o.last.At
	}
	return h, err
}

// attemptAt is one attempt, with one new token for all keys. If one key is refused, the others are released. If it was
// sent along with a release, only its end is awaited. If nodes have refused nothing but the number of a fencing
// token, it is made again at once, and if votes are split, after a pause. Where it has met the end of idle connections it
// is made again at once, and once: its release is on its way before. The error is context.Canceled where the end of the
// caller's context has ended it.
func (w *want) attemptAt(g *site, sent bool) (h Handle, err error) {
	c, s, t := w.c, &w.s, w.term
	counted := s.Several() != nil
	splits, idleEnds := 0, 0
	for again := true; again; sent = false {
		var by *engine.Call
		if sent {
			by, err = c.Sent()
		} else {
			f, failed := g.fresh(&c.Proposal, c.Shared)
			if failed != nil {
				return Handle{}, failed
			}
			c.About(f.token, f.block, 0)
			if w.in != nil && c.And == nil {
				c.Behind = w.in.Part(token.Join(f.token, c.Tail))
			}
			if counted {
				g.Config.Underway.Enter()
			}
			by, err = c.Do()
		}
		s.Until = c.Least()
		s.Granted = g.clock.Now()
		if err == nil && t.isLate(c, s.Until, s.Granted) { // this goroutine may have waited long to run again
			err = engine.ErrExpired
		}
		if err == nil && !stands(c) {
			err = engine.ErrTaken
		}
		c.Note(err)
		if err == nil {
			s.Serial, s.Token = c.Serial, c.Token
			h = handleOf(g, g.keeper.Begin(s, c.Lacking(), c.Block.First), s.Key, s.More)
			granted(c)
			t.won(g, splits, c.LongestTrip())
		} else {
			c.Rollback(err)
		}
		if counted && !sent {
			g.Config.Underway.Leave()
		}
		idle := err == engine.ErrNoQuorum && idleEnds == 0 && metIdleEnd(c)
		if again, err = siteOf(by.On).Fence.Again(c, err); !again || g.Config.OnAttempt != nil {
			err = by.Explain(err)
		}
		if g.Config.OnAttempt != nil { // else the clock is not read
			g.report(engine.Attempt{Ctx: w.ctx, Kind: engine.Acquire, Key: s.Key, Took: by.Took(g.clock.Now()), Votes: by.Tally, Err: err})
		}
		if err == engine.ErrSplit {
			if splits == waiting.MaxSplits {
				return h, engine.ErrTaken // each round had a vote for another
			}
			if ended := g.awaitSplit(by, splits); ended != nil {
				return h, ended
			}
			splits, again = splits+1, true
		}
		if idle {
			idleEnds, again = 1, true
		}
	}
	return h, err
}

// fresh is what each attempt to acquire has anew.
type fresh struct {
	token token.Token
	block fencing.Block // where acquires are fenced
}

// fresh makes the fresh parts of the next attempt. p is what a fenced acquire has proposed before; a shared lock has no
// fencing token. Rand and FenceClock are user code, and may panic.
func (g *site) fresh(p *fencing.Proposal, shared bool) (f fresh, err error) {
	if err := f.token.Fill(g.Config.Rand); err != nil {
		return fresh{}, fmt.Errorf("redlock: %w", err)
	}
	if !shared {
		err = g.Fence.Propose(&f.block, p)
	}
	return f, err
}

// acquired counts and reports how an Acquire went.
func (w *want) acquired(h Handle, err error) {
	t := &w.t
	if err == nil {
		t.Key = h.key
	}
	if t.Waited {
		switch {
		case err == nil && t.End != waiting.HandedOver:
			t.End = waiting.Granted
		case err == engine.ErrClosed:
			t.End = waiting.ClientClosed
		}
		w.lines.CountWait(t)
	}
	if f := w.Config.OnAcquire; f != nil {
		w.Engine.Inform(acquisitions.For(f, group.Acquisition{
			Key: t.Key, Attempts: t.Attempts, Waited: w.clock.Now().Sub(t.Began), HandedOver: t.End == waiting.HandedOver, Ended: time.Now(), Err: err, Ctx: w.ctx,
		}))
	}
}

// gaveUp is the error of an Acquire that has left its lines. err ended its last attempt or wait.
func (w *want) gaveUp(ctx context.Context, err error) error {
	if err == nil || err == engine.ErrClosed {
		return err
	}
	var ended error
	now, wait := w.clock.Now(), engine.Limit{At: w.limit.At}
	if w.t.End != waiting.Exhausted { // else it has, also if ctx has ended since
		switch inTime := ctx.Err() == nil; {
		case inTime && err != context.Canceled:
			return err
		case inTime && wait.IsOver(now):
			w.t.End = waiting.Exhausted
		default: // also of a context without an error
			w.t.End, ended = waiting.GaveUp, texts.EndOf(ctx)
		}
	}
	if w.t.Last == nil && ended == nil {
		w.t.Last = engine.ErrNoAnswer
	}
	return w.Config.AcquireError(w.t.Key, w.t.Attempts, now.Sub(w.t.Began), w.t.Last, ended)
}

// unlessEnding gives a lock back that a waiting caller has got while the client ends. The end waits for callers in
// lines: so the release is sent, where one by the user might come too late.
func (g *site) unlessEnding(h Handle, err error) (Handle, error) {
	if err != nil || !engine.IsClosed(g.ending) {
		return h, err
	}
	h.ReleaseAsync()
	return Handle{}, engine.ErrClosed
}
