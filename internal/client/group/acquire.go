package group

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/client/waiting"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/wire/token"
	"github.com/redlock-go/redlock/quorum"
)

// Acquire makes attempts to acquire the lock on a key, in line with others for it, until one wins, one fails for a
// lasting reason, they are used up, or ctx ends. With once it makes one attempt, and none beside waiters of this
// process whose last one, at most a second ago, was denied. met, if not nil, learns whether the lock is won against others.
func (g *Group) Acquire(ctx context.Context, key string, ttl time.Duration, once bool, met *Contest) (Handle, error) {
	ctx = orBackground(ctx)
	if ctx.Err() != nil || !g.isPlain() || token.TailFrom(ctx) != "" {
		return g.acquire(ctx, key, nil, ttl, once, met, nil)
	}
	h, ended, err := g.plainly(ctx, key, ttl, met)
	if ended == nil {
		return h, err
	}
	return g.acquire(ctx, key, nil, ttl, once, met, ended)
}

// acquire is Acquire of a lock not plain. ended is the first attempt if it was made: it has ended without a lock.
func (g *Group) acquire(ctx context.Context, key string, more *holding.More, ttl time.Duration, once bool, met *Contest, ended *engine.Call) (Handle, error) {
	t := g.lines.NewTries(key)
	if ended != nil { // what it was granted too late is released before ctx is asked, which may panic
		t.Began = t.Began.Add(-ended.Took(t.Began))
	} else if err := ctx.Err(); err != nil { // it is not reported: there was no attempt
		if once {
			return Handle{}, err
		}
		return Handle{}, g.cutOff(ctx, &t)
	}
	s := holding.State{Key: key, More: more}
	by := caller{}
	if ended == nil {
		by = callerOf(ctx)
	}
	c, err := g.acquisition(by, &s, ttl, ended)
	if err != nil {
		return Handle{}, err
	}
	defer c.Free()
	c.meet(met)
	if once {
		if _, taken := g.lines.Look(key); taken && ended == nil && more == nil {
			g.reportUnsent(ctx, engine.Acquire, key, engine.ErrTaken)
			return Handle{}, engine.ErrTaken
		}
		h, r, err := g.attempt(&c, &s, ended != nil)
		g.report(ctx, h, r)
		return g.afterHooks(h, asked(ctx, err))
	}
	var h Handle
	if more != nil {
		h, err = g.inLines(ctx, &t, &c, &s)
	} else {
		h, err = g.inLine(ctx, &t, &c, &s, ended != nil)
	}
	return g.acquired(ctx, &t, h, g.gaveUp(ctx, &t, err))
}

// caller is what a call needs to know of its context. That is user code, and may block: it is asked before its caller
// stands in a line, and after it has left.
type caller struct {
	done <-chan struct{}
	tail string // the value is one of a front end
}

func callerOf(ctx context.Context) caller { return caller{ctx.Done(), token.TailFrom(ctx)} }

// acquisition returns the calls for the attempts of one caller to get the lock of s. The caller frees them. The first
// may have ended already.
func (g *Group) acquisition(by caller, s *holding.State, ttl time.Duration, ended *engine.Call) (c Calls, err error) {
	if ended != nil {
		s.TTL = ended.TTL
		c.Take(holding.Part{Call: ended, Site: g})
		return c, nil
	}
	if by.tail != "" {
		if s.More == nil {
			s.More = new(holding.More)
		}
		s.More.HasTail, s.More.Tail = true, by.tail
	}
	if c, err = newCalls(g, engine.Acquire, s, ttl, g.cfg.tail); err != nil {
		return c, err
	}
	c.Watch(by.done)
	s.TTL = c.First().TTL
	return c, nil
}

// inLine is Acquire for one key: after the callers and the processes already waiting for it. The first attempt may
// have ended already.
func (g *Group) inLine(ctx context.Context, t *waiting.Tries, c *Calls, s *holding.State, ended bool) (Handle, error) {
	var last waiting.Ended
	if ended || !g.lines.IsContended(s.Key) {
		t.Attempts++
		h, r, err := g.attempt(c, s, ended)
		last.At = g.clock.Now()
		g.report(ctx, h, r)
		if err == nil || !t.ShouldRetry(err) {
			return h, err
		}
		if g.lines.CanBeWoken() || t.IsLimited() {
			last.Denied = deniedBy(c.First())
		} // else it asks again at once, in case of a release before it is in line
	}
	last.Err = t.Last
	t.Wait(false)
	w := g.lines.Join(s.Key, c.First(), last, nil)
	defer w.Leave()
	for {
		why, handed := w.Await(c.First().Watched(), t)
		sent := w.AwaitSent()
		switch {
		case sent, why == waiting.MayAttempt: // what was sent is an attempt, also if the wait has ended since
		case why == waiting.Handed:
			h := Handle{group: g, hold: handed, key: s.Key}
			if err := h.accept(t); err != engine.ErrExpired {
				return g.unlessEnding(h, err)
			}
			w.StandAgain()
			continue
		default:
			return Handle{}, inVain(why)
		}
		t.Attempts++
		h, r, err := g.attempt(c, s, sent)
		h, err = g.unlessEnding(h, err)
		w.Attempted(h.hold, deniedBy(c.First()), err)
		g.report(ctx, h, r, w)
		if err == nil || !t.ShouldRetry(err) {
			w.Hear(t)
			return h, err
		}
		t.Wait(false)
	}
}

// attempt is one attempt, with one new token for all keys. If one key is refused, the others are released. If it was
// sent along with a release, only its end is awaited. If nodes have refused nothing but the number of a fencing
// token, it is made again at once, and if votes are split, after a pause. Where it has met the end of idle connections it
// is made again at once, and once: its release is on its way before. The caller reports the attempts to the hook, after
// it has let others act. The error is context.Canceled where the end of the caller's context has ended it.
func (g *Group) attempt(c *Calls, s *holding.State, sent bool) (h Handle, r *reports, err error) {
	first, counted := c.First(), s.Several() != nil || g.HasHooks()
	splits, idleEnds := 0, 0
	for again := true; again; sent = false {
		var op *engine.Op
		var unsent bool
		if sent {
			op, unsent, err = c.Await()
		} else {
			f, failed := g.fresh(&first.Proposal)
			if failed != nil {
				return Handle{}, r, failed
			}
			c.About(f.token, f.block, 0)
			if counted {
				g.cfg.Underway.Enter()
			}
			op, unsent, err = c.Do()
		}
		s.Until = c.Until()
		if err == nil && g.clock.Now() >= s.Until { // this goroutine may have waited long to run again
			err = engine.ErrExpired
		}
		if err == nil && !c.Stands() {
			err = engine.ErrTaken
		}
		c.Note(err)
		if err == nil {
			s.Serial, s.Token = first.Serial, first.Token
			h = g.begin(s, c.Absent(), first.Block.First)
			h.granted()
			c.Granted()
			c.met.won(g, splits, c.Trip())
		} else if !unsent {
			c.Rollback(err)
		}
		if counted && !sent {
			g.cfg.Underway.Leave()
		}
		idle := err == engine.ErrNoQuorum && idleEnds == 0 && c.MetIdleEnd()
		if again, err = c.Again(err); !again || g.cfg.OnAttempt != nil {
			err = c.Explain(op, err)
		}
		if g.cfg.OnAttempt != nil {
			r = r.with(report{s.Key, op.Took(g.clock.Now()), op.Tally, err})
		}
		if err == engine.ErrSplit {
			if splits == waiting.MaxSplits {
				return h, r, engine.ErrTaken // each round had a vote for another
			}
			if ended := g.awaitSplit(c, splits); ended != nil {
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

// fresh makes the fresh parts of the next attempt. Rand and FenceClock are user code, and may panic.
func (g *Group) fresh(p *fencing.Proposal) (f fresh, err error) {
	if err := f.token.Fill(g.cfg.Rand); err != nil {
		return fresh{}, fmt.Errorf("redlock: %w", err)
	}
	if err := g.fence.Propose(&f.block, p); err != nil {
		return fresh{}, err
	}
	return f, nil
}

// acquired counts and reports how an Acquire went. If the hook panics, the caller gets no
// handle, and the lock is released.
func (g *Group) acquired(ctx context.Context, t *waiting.Tries, h Handle, err error) (Handle, error) {
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

// gaveUp is the error of an Acquire that has left its lines, after an attempt or a wait that has ended with err.
func (g *Group) gaveUp(ctx context.Context, t *waiting.Tries, err error) error {
	if err != nil && t.End == waiting.AttemptsUsedUp { // also if ctx has ended since
		return g.acquireError(t, nil)
	}
	if err == nil || err == engine.ErrClosed || err != context.Canceled && ctx.Err() == nil { // Do returns Canceled for a context without an error
		return err
	}
	return g.cutOff(ctx, t)
}

// inVain is the error of a wait, for gaveUp.
func inVain(why waiting.Reason) error {
	if why == waiting.Closed {
		return engine.ErrClosed
	}
	return context.Canceled
}

// cutOff is the error of an Acquire when its context has ended.
func (g *Group) cutOff(ctx context.Context, t *waiting.Tries) error {
	t.End = waiting.GaveUp
	return g.acquireError(t, texts.EndOf(ctx))
}

func (g *Group) acquireError(t *waiting.Tries, ended error) error {
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
	t.Last = engine.ErrExpired
	return engine.ErrExpired
}

// unlessEnding gives a lock back that a waiting caller has got while the client ends. The end waits for callers in
// lines: so the release is sent, where one by the user might come too late.
func (g *Group) unlessEnding(h Handle, err error) (Handle, error) {
	if err != nil || !engine.IsClosed(g.ending) {
		return h, err
	}
	h.drop()
	return Handle{}, engine.ErrClosed
}
