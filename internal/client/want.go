package client

import (
	"context"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/group"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/client/waiting"
	"github.com/redlock-go/redlock/internal/rules/renewal"
	"github.com/redlock-go/redlock/internal/wire/token"
)

// want is one call for a lock: what is asked for, how, and how far it has come. It has options, one as a rule, and takes
// the first lock to be had. It never asks for more than one at a time: no caller meets a key which another is about to give
// back. It is used again, so a caller that waits has none of it on its stack.
type want struct {
	*site     // of the first option: it counts and reports the call
	*settings // of the client
	Mode
	ttl     time.Duration
	options []option
	term    *term // of a call of Do; or nil
	stage   stage
	t       waiting.Tries

	// What it knows of its context. That is user code, and may block: it is asked before its caller stands in a line, and
	// after it has left.
	limit engine.Limit
	own   *holding.More // of a lock with another name than the client's, or with the value of a front end; or nil

	ctx context.Context // for hooks
	in  *waiting.Demand // where it stands in line; or nil
	at  int             // the option of c and s
	c   *engine.Call
	s   holding.State
}

// stage is what has come before the attempts of a want.
type stage uint8

const (
	anew     stage = iota
	goesOn         // the first of them: plainly has made it, and it has ended without a lock
	collects       // those for all keys of a set, which takes them one by one now: this is one of them
)

var wants = sync.Pool{New: func() any { return new(want) }}

// want returns one without options, to be given to free.
func (c *Client) want(g *site, ttl time.Duration, mode Mode, t *term) *want {
	w := wants.Get().(*want)
	w.site, w.settings, w.ttl, w.Mode, w.term = g, &c.settings, ttl, mode, t
	return w
}

func (w *want) free() {
	w.c.Free()
	clear(w.options)
	*w = want{options: w.options[:0]}
	wants.Put(w)
}

// isSet reports whether its only option has several keys.
func (w *want) isSet() bool { return len(w.options) == 1 && w.options[0].More != nil }

// acquire makes attempts to acquire the lock on a key, in line with others for it, until one wins, one fails for a
// lasting reason, they are used up, or its limit is over. With Once it makes one attempt, and none beside waiters of this
// process whose last one, at most a second ago, was denied. t is the term of a call of Do, or nil.
func (c *Client) acquire(ctx context.Context, key string, ttl time.Duration, mode Mode, t *term) (h Handle, err error) {
	g, second := c.of(key)
	if second != nil {
		return c.acquireSeveral(ctx, ttl, []string{key}, mode, t)
	}
	ctx = orBackground(ctx)
	var ended *engine.Call // the first attempt, if it was made and has ended without a lock
	if g.plain && !g.lines.IsContended(key) && !t.isFixed() && ctx.Err() == nil && token.TailFrom(ctx) == "" {
		if h, ended, err = c.plainly(ctx, g, key, ttl, mode, t); ended == nil {
			return h, err
		}
	}
	w := c.want(g, ttl, mode, t)
	w.options = append(w.options, option{site: g, Key: key})
	return w.acquire(ctx, ended)
}

func (w *want) acquire(ctx context.Context, ended *engine.Call) (h Handle, err error) {
	defer w.free()
	w.ctx = ctx
	w.t = w.lines.NewTries(w.options[0].Key, w.Attempts)
	w.own = w.more
	if ended != nil { // what it was granted too late is released before ctx is asked, which may panic
		w.t.Began = w.t.Began.Add(-ended.Took(w.t.Began))
		w.limit, w.stage = ended.Watched(), goesOn
	} else if err := ctx.Err(); err != nil { // it is not reported: there was no attempt
		if w.Mode&Once != 0 {
			return Handle{}, err
		}
		return Handle{}, w.gaveUp(ctx, err)
	} else {
		w.limit = w.settings.limit(w.site, w.Mode, ctx.Done())
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

// limit is that of a call that begins now, with a context.
func (s *settings) limit(g *site, mode Mode, done <-chan struct{}) engine.Limit {
	l := engine.Limit{Done: done}
	if s.Wait > 0 && mode&Once == 0 {
		l.At = g.clock.Now().Add(s.Wait)
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
			c.Denied = w.term.denials()
			w.term.lengthen(c, o)
		})
	}
	w.c.Free()
	w.c, w.s, w.at = c, s, at
	return nil
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
