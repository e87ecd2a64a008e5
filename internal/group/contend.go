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
		t := g.lines.turn(own)
		switch {
		case t.handed.Remaining() > 0:
			w.ended = handedOver
			return t.handed, nil
		case t.handed.lease != nil: // this goroutine has waited long to run again, or a hook has
			t.handed.ReleaseAsync()
			w.last = engine.ErrExpired
			g.lines.stand(own, 0)
			continue
		case t.acts && t.step.Action == waiters.Attempt:
			if h, err = g.attemptFor(ctx, w, own); err == nil || !w.goesOn(err) {
				return h, g.gaveUp(ctx, w, err)
			}
		case t.acts:
			g.lines.act(own, t.step, done)
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
	if own.asks && g.lines.awaitAlong(own) {
		if h, err = g.attempted(ctx, own.call, w.key, own.call.Ended(ctx)); err != nil {
			_, err = g.fence.learn(&own.call.Op, &own.call.Proposal, err)
		}
	} else {
		h, err = g.attempt(ctx, own.call, w.key)
	}
	if held, ok := h.state(); ok {
		own.won = true
		g.lines.did(own, func(l *line, _ *waiters.Surroundings) { beginTurn(l, held.until) })
		return h, err
	}
	var denied uint64
	if err == engine.ErrTaken {
		denied = deniedBy(&own.call.Op)
	}
	g.lines.did(own, func(l *line, s *waiters.Surroundings) {
		if isPassing(err) {
			l.Contender.Refused(s, denied)
		} else { // this waiter leaves, and the next asks at once
			l.Contender.Freed()
		}
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
	w.asks = false
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

// did tells the line what w, which acts for it, has done, and has it act no more. If w is
// not the first any more, since the lock was passed on to it, the first acts now.
func (l *lines) did(w *waiter, tell func(*line, *waiters.Surroundings)) {
	s := l.shard(w.key)
	s.mu.Lock()
	line := w.acts
	line.Busy, w.acts = false, nil
	tell(line, l.surroundings(line))
	if first := line.First(); first != nil && first.Owner != w {
		first.Owner.ring()
	}
	left := l.settle(s, line)
	s.mu.Unlock()
	l.depart(w.key, left)
}

// abandon is did for a waiter that leaves while it acts: a panic has ended it, or its
// context has while its call was on its way.
func (l *lines) abandon(w *waiter) {
	if w.asks && l.awaitAlong(w) && !w.call.Over() && w.call.Err == nil {
		l.group.engine.Abandon(&w.call.Op)
	}
	l.did(w, func(line *line, _ *waiters.Surroundings) { line.Contender.Freed() })
}

// act does what the contender of the line of w says, but for attempts, and tells it the
// result.
func (l *lines) act(w *waiter, step waiters.Step, done <-chan struct{}) {
	switch step.Action {
	case waiters.Leave:
		l.depart(w.key, departure{true, step.First, step.Node})
		l.did(w, func(*line, *waiters.Surroundings) {})
	case waiters.Enter:
		e, err := l.pushes.enter(l.group, w.key, step, done)
		if err == errGivenUp || engine.IsTimeout(err) { // the process may enter all the same
			l.depart(w.key, departure{true, step.First, step.Node})
		}
		l.did(w, func(line *line, s *waiters.Surroundings) {
			if err != nil {
				line.Contender.Lost(bit(step.Node))
				l.failed(line, s, step.Node, err)
				return
			}
			line.Contender.Entered(s, step.Node, e)
			if e.Others > 0 {
				line.Passes = min(line.Passes, line.Len())
			}
		})
	case waiters.Watch:
		ttl, err := l.pushes.watch(l.group, w.key, step.Node, done)
		l.did(w, func(line *line, s *waiters.Surroundings) {
			if err != nil {
				l.failed(line, s, step.Node, err)
				return
			}
			line.Contender.Watched(s, step.Node, ttl)
		})
	}
}

// failed tells the line that a node was of no use, unless the waiter has given up.
func (l *lines) failed(line *line, s *waiters.Surroundings, node int, err error) {
	if err != errGivenUp {
		line.Contender.Failed(s, node)
	}
}

// departure is a queue of processes that is to be left: the node that has it, if there is
// one.
type departure struct {
	is, first bool
	node      int
}

// depart leaves a queue. It does not wait for the node. No lock is held: the driver takes
// those of shards.
func (l *lines) depart(key string, d departure) {
	if d.is {
		l.pushes.leave(l.group, key, d)
	}
}
