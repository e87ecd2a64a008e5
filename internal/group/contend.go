package group

import (
	"context"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/waiters"
	"github.com/redlock-go/redlock/quorum"
)

// inLine is Group.attempts for one key: behind the callers that wait for it already, and
// behind the processes that do.
func (g *Group) inLine(ctx context.Context, w *waiting, c *engine.Call) (h Handle, err error) {
	var denied uint64
	if w.last = engine.ErrTaken; !g.lines.isContended(w.key) {
		w.attempts++
		if h, err = g.attempt(ctx, c, w.key); err == nil || !w.goesOn(err) {
			return h, g.gaveUp(ctx, w, err)
		}
		if g.lines.pushes.usable.Load() != 0 || w.limit > 0 {
			denied = deniedBy(&c.Op)
		} // else it asks again at once, in case of a release before it is in line
	}
	done := ctx.Done()
	w.waited = true
	own := g.lines.join(w.key, c, denied)
	defer g.lines.leave(own)
	for {
		t, handed := g.lines.turn(own)
		switch {
		case handed.Remaining() > 0:
			w.ended = handedOver
			return handed, nil
		case handed.lease != nil: // this goroutine has waited long to run again, or a hook has
			handed.ReleaseAsync()
			w.last = engine.ErrExpired
			g.lines.stand(own, 0)
			continue
		case t.Acts && t.Step.Action == waiters.Attempt:
			if h, err = g.attemptFor(ctx, w, own); err == nil || !w.goesOn(err) {
				return h, g.gaveUp(ctx, w, err)
			}
		case t.Acts:
			g.lines.act(own, t.Step, done)
		default:
			g.lines.park(own, done)
		}
		if isClosed(g.ending) {
			return Handle{}, engine.ErrClosed
		}
		if isClosed(done) || ctx.Err() != nil {
			return Handle{}, g.cutOff(ctx, w)
		}
	}
}

// attemptFor is an attempt by the first of a line, or the end of one that the last holder
// has sent along with its release.
func (g *Group) attemptFor(ctx context.Context, w *waiting, own *waiter) (h Handle, err error) {
	w.attempts++
	if own.Asks() && g.lines.awaitAlong(own) {
		if h, err = g.attempted(ctx, own.call, w.key, own.call.Ended(ctx)); err != nil {
			var again bool
			if again, err = g.fence.learn(&own.call.Op, &own.call.Proposal, err); again {
				h, err = g.attempt(ctx, own.call, w.key)
			}
		}
	} else {
		h, err = g.attempt(ctx, own.call, w.key)
	}
	if held, ok := h.state(); ok {
		own.won = true
		g.lines.did(own, func(t *table) due { return t.Won(&own.Waiter, held.until) })
		return h, err
	}
	var denied uint64
	if err == engine.ErrTaken {
		denied = deniedBy(&own.call.Op)
	}
	g.lines.did(own, func(t *table) due {
		if isPassing(err) {
			return t.Refused(&own.Waiter, denied)
		}
		return t.Ended(&own.Waiter)
	})
	return h, err
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

// did tells the line what w, which acts for it, has done, and has it act no more.
func (l *lines) did(w *waiter, tell func(*table) due) {
	s := l.shard(w.key)
	s.mu.Lock()
	left := l.change(tell(&s.table))
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

// act does what the contender of the line of w says, but for attempts, and tells it the
// result.
func (l *lines) act(w *waiter, step waiters.Step, done <-chan struct{}) {
	switch step.Action {
	case waiters.Leave:
		l.depart(w.key, departure{Is: true, First: step.First, Node: step.Node})
		l.did(w, func(t *table) due { return t.Done(&w.Waiter) })
	case waiters.Enter:
		e, err := l.pushes.enter(l.group, w.key, step, done)
		if err == errGivenUp || engine.IsTimeout(err) { // the process may enter all the same
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
		ttl, err := l.pushes.watch(l.group, w.key, step.Node, done)
		l.did(w, func(t *table) due {
			switch {
			case err == errGivenUp:
				return t.Done(&w.Waiter)
			case err != nil:
				return t.Failed(&w.Waiter, step.Node)
			}
			return t.Watched(&w.Waiter, step.Node, ttl)
		})
	}
}

// depart leaves a queue. It does not wait for the node. No lock is held: the driver takes
// those of shards.
func (l *lines) depart(key string, d departure) {
	if d.Is {
		l.pushes.leave(l.group, key, d)
	}
}
