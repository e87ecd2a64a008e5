package group

import (
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/waiters"
	"github.com/redlock-go/redlock/quorum"
)

// inLine is Acquire for one key: behind the callers that wait for it already, and behind the
// processes that do.
func (g *Group) inLine(ctx context.Context, w *waiting, c *engine.Call) (h Handle, err error) {
	var denied uint64
	if w.last = engine.ErrTaken; !g.lines.isContended(w.key) {
		w.attempts++
		if h, err = g.attempt(ctx, c, w.key, false, nil); err == nil || !w.goesOn(err) {
			return h, g.gaveUp(ctx, w, err)
		}
		if g.lines.pushes.usable.Load() != 0 || w.limit > 0 {
			denied = deniedBy(&c.Op)
		} // else it asks again at once, in case of a release before it is in line
	}
	w.waits(g)
	own := g.lines.join(w.key, c, denied, false)
	defer g.lines.leave(own)
	for {
		handed, _, err := g.lines.await(ctx, w, own, never)
		switch {
		case err != nil:
			return Handle{}, err
		case handed.Remaining() > 0:
			w.ended = handedOver
			return handed, nil
		case !handed.hold.IsZero(): // this goroutine has waited long to run again
			handed.ReleaseAsync()
			w.last = engine.ErrExpired
			g.lines.stand(own, 0)
			continue
		}
		if h, err = g.attemptFor(ctx, w, own); err == nil || !w.goesOn(err) {
			return h, g.gaveUp(ctx, w, err)
		}
		w.waits(g)
	}
}

// await waits until it is the turn of own to ask the nodes, until a lock is passed on to it,
// or until an instant, and then it is late. The error is that of an Acquire which has waited
// in vain.
func (l *lines) await(ctx context.Context, w *waiting, own *waiter, until time.Duration) (handed Handle, late bool, err error) {
	g, done := l.group, ctx.Done()
	for {
		if isClosed(g.ending) {
			return Handle{}, false, engine.ErrClosed
		}
		if isClosed(done) || ctx.Err() != nil {
			return Handle{}, false, g.cutOff(ctx, w)
		}
		t, handed := l.turn(own)
		switch {
		case t.Takes:
			return handed, false, nil
		case t.Acts && t.Step.Action == waiters.Attempt:
			return Handle{}, false, nil
		case t.Acts:
			l.act(own, t.Step, done)
			continue
		}
		l.park(own, done, min(w.next, until))
		now := g.clock.Now()
		if now >= w.next && !l.ask(own) && !w.refused(g) {
			return Handle{}, false, g.gaveUp(ctx, w, engine.ErrTaken)
		}
		if now >= until {
			return Handle{}, true, nil
		}
	}
}

// attemptFor is an attempt by the first of a line, or the end of one that the last holder
// has sent along with its release.
func (g *Group) attemptFor(ctx context.Context, w *waiting, own *waiter) (h Handle, err error) {
	w.attempts++
	var r reports
	sent := own.Asks() && g.lines.awaitAlong(own)
	h, err = g.attempt(ctx, own.call, w.key, sent, &r)
	g.lines.attempted(own, h, deniedBy(&own.call.Op), err)
	g.reportFor(ctx, own, h, r)
	return h, err
}

// reportFor is report for one that stands in a line, in which others act meanwhile: a hook may
// block.
func (g *Group) reportFor(ctx context.Context, w *waiter, h Handle, r reports) {
	if len(r) == 0 {
		return
	}
	g.lines.did(w, func(t *table) due { return t.Away(&w.Waiter, true) })
	defer g.lines.did(w, func(t *table) due { return t.Away(&w.Waiter, false) })
	g.report(ctx, h, r)
}

// attempted reports the end of an attempt of w to its line, and has w act no more.
func (l *lines) attempted(w *waiter, h Handle, denied uint64, err error) {
	held, won := h.hold.State()
	w.won = w.won || won
	l.did(w, func(t *table) due {
		switch {
		case won:
			return t.Won(&w.Waiter, held.Until, denied)
		case err == engine.ErrTaken:
			return t.Refused(&w.Waiter, denied)
		case isPassing(err):
			return t.Refused(&w.Waiter, 0)
		}
		return t.Ended(&w.Waiter)
	})
}

// awaitAlong waits for the end of the call of w that a release has taken along. It is false
// if the release had no room for it in the queue: it was not sent. No user code runs here,
// which might panic: the call has one end to wait for.
func (l *lines) awaitAlong(w *waiter) (sent bool) {
	l.group.engine.AwaitAlong(w.call)
	s := l.shard(w.key)
	s.mu.Lock()
	w.Told()
	s.mu.Unlock()
	return w.call.Over() || w.call.Err != engine.ErrBusy
}

// deniedBy is the nodes that had the key of an acquire already.
func deniedBy(op *engine.Op) (denied uint64) {
	if op.Tally.Denied() == 0 {
		return 0
	}
	for node := range quorum.MaxNodes {
		if o, _ := op.Tally.Outcome(node); o == quorum.Denied {
			denied |= 1 << node
		}
	}
	return denied
}

type (
	table = waiters.Table[*waiter]
	due   = waiters.Due[*waiter]
)

// did reports to the line what w, which acts for it, has done, and has it act no more.
func (l *lines) did(w *waiter, report func(*table) due) {
	s := l.shard(w.key)
	s.mu.Lock()
	left := l.change(report(&s.table))
	s.mu.Unlock()
	l.depart(w.key, left)
}

// abandon is did for a waiter that leaves while it acts: a panic has ended it, or its
// context has while its call was on its way.
func (l *lines) abandon(w *waiter) {
	if w.Asks() && l.awaitAlong(w) && !w.call.Over() && w.call.Err == nil {
		l.group.engine.Abandon(&w.call.Op)
	}
	l.did(w, func(t *table) due { return t.Ended(&w.Waiter) })
}

// act does what the contender of the line of w decides, but for attempts, and reports the
// result to it.
func (l *lines) act(w *waiter, step waiters.Step, done <-chan struct{}) {
	g, p := l.group, &l.pushes
	switch step.Action {
	case waiters.Leave:
		l.depart(w.key, departure{Is: true, First: step.First, Node: step.Node})
		l.did(w, func(t *table) due { return t.Done(&w.Waiter) })
	case waiters.Enter:
		e, err := p.enter(g, w.key, step, done)
		if err != nil { // the process may have entered, or enter, all the same
			l.depart(w.key, departure{Is: true, First: step.First, Node: step.Node})
		}
		l.did(w, func(t *table) due {
			switch {
			case err == errGivenUp:
				return t.NotEntered(&w.Waiter, step.Node)
			case err != nil:
				return t.Failed(&w.Waiter, step.Node)
			}
			return t.Entered(&w.Waiter, step.Node, e)
		})
	case waiters.Watch:
		ttl, err := p.watch(g, w.key, step.Node, done)
		l.did(w, func(t *table) due {
			if err != nil {
				return l.notDone(t, w, step.Node, err)
			}
			return t.Watched(&w.Waiter, step.Node, ttl)
		})
	case waiters.Claim:
		own, left, err := p.claim(g, w.key, step, done)
		l.did(w, func(t *table) due {
			if err != nil {
				return l.notDone(t, w, step.Node, err)
			}
			return t.Claimed(&w.Waiter, own, left)
		})
	}
}

// notDone reports to the line of w that an action at a node has ended with err.
func (l *lines) notDone(t *table, w *waiter, node int, err error) due {
	if err == errGivenUp {
		return t.Done(&w.Waiter)
	}
	return t.Failed(&w.Waiter, node)
}

// depart leaves a queue. It does not wait for the node. No lock is held: the driver takes
// those of shards.
func (l *lines) depart(key string, d departure) {
	if d.Is {
		l.pushes.leave(l.group, key, d)
	}
}
