package waiting

import (
	"cmp"
	"context"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/quorum"
)

// Waiter is the place of a caller in a line. Its methods are for the caller's goroutine. The shard's lock protects
// its fields, but for the bell.
type Waiter struct {
	lines *Lines
	key   string
	call  *engine.Call
	bell  *Bell
	whole bool          // its caller wants several keys as one lock: none is passed on to it
	stood clock.Instant // since when it waits
	look  clock.Instant // when it acts by itself; never: it is woken

	line       *line // its place is there; nil: in no line
	prev, next *Waiter
	acts       *line         // the busy line it acts for
	sent       bool          // its call was given to a release, to be sent along
	rests      bool          // it takes what it is given: its goroutine waits, for nodes at most, and is in no attempt and no user code
	away       bool          // its goroutine is in user code: it does nothing for its line
	handed     holding.Hold  // the lock, once passed on to it; it may be asking the nodes then
	place      *place        // if it stands there for a choice
	keeps      clock.Instant // it keeps its turn until then, and waits no longer; 0: it does not
	free       bool          // its caller knows that the key is left free
	won        bool          // the nodes have granted it the lock
}

// A turn is kept for keepMost at most, and for keepLeast at least: for some round trips, and sections no longer than
// these.
const (
	keepMost  = 1200 * time.Millisecond
	keepLeast = 10 * time.Millisecond
)

// Reason is why a waiter waits no longer.
type Reason uint8

const (
	none       Reason = iota // none: it waits
	MayAttempt               // it is to ask the nodes for the lock
	Handed                   // the lock was passed on to it
	Late                     // it has kept its turn long enough
	GivesUp                  // its context has ended
	UsedUp                   // its attempts are used up
	Closed                   // the client closes
)

// Ended is how an attempt has ended: without the lock, with Err, refused by the nodes of Denied. Err is nil where there
// was none.
type Ended struct {
	At     clock.Instant // a hook may have kept its caller since
	Err    error
	Denied quorum.Set
}

// stand puts w, outside any line, at the end of its own, after an attempt of its caller.
func (w *Waiter) stand(last Ended) {
	l := w.lines
	s := l.lock(w.key)
	defer s.mu.Unlock()
	line, isNew := l.lineFor(s, w.key)
	w.look, w.stood, w.rests = clock.Never, l.cfg.Clock.Now(), true
	line.push(w)
	line.failed(last.At, last.Err)
	if p := w.place; p != nil {
		line.contender.Apart(p.at, len(p.choice.places))
	}
	if isNew && (last.Denied != 0 || last.Err != nil && last.Err != engine.ErrTaken) { // else it may be old news to the first, watching the key since
		around := l.around(line)
		line.contender.Refused(&around, last.Denied)
	}
	if isNew {
		l.cfg.Ring()
	}
}

// StandAgain has w wait at the end of its line, after a lock was passed on to it in vain.
func (w *Waiter) StandAgain() { w.stand(Ended{}) }

// Await is Await of Lines for a caller with one place.
func (w *Waiter) Await(done <-chan struct{}, t *Tries) (Reason, holding.Hold) {
	return w.lines.Await(done, t, w.bell, w)
}

// Await waits for the turn of one of all, the places of one caller, and meanwhile acts for their lines. A place may
// be nil; a place whose turn was kept long enough is left. A lock passed on is returned. A caller that has waited in
// vain learns how the last attempt of a line, by others, ended.
func (l *Lines) Await(done <-chan struct{}, t *Tries, b *Bell, all ...*Waiter) (Reason, holding.Hold) {
	why, handed := l.await(done, t, b, all)
	if why != MayAttempt && why != Handed {
		Hear(t, all)
	}
	return why, handed
}

func (l *Lines) await(done <-chan struct{}, t *Tries, b *Bell, all []*Waiter) (Reason, holding.Hold) {
	for {
		why, next, stand := l.over(done), t.next, 0
		if why != none {
			return why, holding.Hold{}
		}
		for i, w := range all {
			if w == nil {
				continue
			}
			reason, step, handed := w.step()
			switch {
			case reason == Handed:
				return reason, handed
			case reason == Late:
				w.Hear(t)
				w.Leave()
				all[i], next = nil, 0
				continue
			case reason == MayAttempt:
				why = reason
			case step.Action != contention.Pause:
				w.act(step, done)
				next = 0
			}
			next, stand = min(next, w.look), stand+1
		}
		if why != none || stand == 0 && next == 0 { // it has left its last line
			return MayAttempt, holding.Hold{}
		}
		b.sleep(next.Sub(l.cfg.Clock.Now()), next, done, l.cfg.Ending)
		switch {
		case l.cfg.Clock.Now() < t.next:
		case t.polls:
			return MayAttempt, holding.Hold{}
		case !all[0].asks() && !t.skipped():
			return UsedUp, holding.Hold{}
		}
	}
}

// over reports whether the client closes, or a caller gives up. Its context is not asked: others wait for its caller.
func (l *Lines) over(done <-chan struct{}) Reason {
	switch {
	case engine.IsClosed(l.cfg.Ending):
		return Closed
	case engine.IsClosed(done):
		return GivesUp
	}
	return none
}

// Hear is Hear for a caller with several places, each of which may be nil.
func Hear(t *Tries, all []*Waiter) {
	for _, w := range all {
		w.Hear(t)
	}
}

// Hear gives a caller, in vain so far, the end of the last attempt of its line.
func (w *Waiter) Hear(t *Tries) {
	if w == nil {
		return
	}
	s := w.lines.lock(w.key)
	defer s.mu.Unlock()
	if l := w.line; l != nil {
		t.Last = cmp.Or(l.news(w.lines.cfg.Clock.Now(), t.Began), t.Last)
	}
}

// step decides what w does next. It waits no longer; else it acts for its line, and reports the result by finish; or
// it parks.
func (w *Waiter) step() (why Reason, step contention.Step, handed holding.Hold) {
	s := w.lines.lock(w.key)
	defer s.mu.Unlock()
	l := w.line
	w.rests = false
	switch {
	case w.sent:
		return MayAttempt, step, handed
	case l == nil:
		handed, w.handed = w.handed, holding.Hold{}
		return Handed, step, handed
	case w.keeps != 0 && w.lines.cfg.Clock.Now() >= w.keeps:
		return Late, step, handed
	case l.actor() != w, l.busy:
		w.look = clock.Never // the leaving or acting waiter wakes it
		if w.isAway() && !l.busy {
			l.wake()
		}
	default:
		l.known = 0
		around := w.lines.around(l)
		step = l.contender.Next(&around)
		if step.Action == contention.Attempt && w.place != nil && !w.place.give() {
			w.look = clock.Never // its callers act for other lines
			break
		}
		if step.Action != contention.Pause {
			l.busy, w.acts = true, l
			w.rests = step.Action != contention.Attempt
			if !w.rests {
				why = MayAttempt
			}
			return why, step, handed
		}
		w.look = step.Until
		if l.contender.IsFree(around.Now) {
			l.wakeSets()
		}
	}
	if w.seesFree() {
		return MayAttempt, contention.Step{}, handed
	}
	if w.keeps != 0 {
		w.look = min(w.look, w.keeps)
	}
	w.rests = true
	return none, contention.Step{}, handed
}

// isOfSet reports whether its caller wants all of several keys.
func (w *Waiter) isOfSet() bool { return w.whole && w.place == nil }

// seesFree reports, once, that the key is left free, to sets and to those in no queue. The shard is locked.
func (w *Waiter) seesFree() (now bool) {
	free := w.isOfSet() && w.line.contender.IsFree(w.lines.cfg.Clock.Now())
	now, w.free = free && !w.free, free
	return now
}

// asks has w ask the nodes at its next turn, and reports whether it will: only the actor of a line does.
func (w *Waiter) asks() bool {
	s := w.lines.lock(w.key)
	defer s.mu.Unlock()
	l := w.line
	if l == nil || l.actor() != w || l.busy {
		return false
	}
	return l.contender.Ask(w.lines.cfg.Clock.Now())
}

// act carries out the decision of the line's contender, but for attempts.
func (w *Waiter) act(step contention.Step, done <-chan struct{}) {
	p := &w.lines.tracking
	switch step.Action {
	case contention.Leave:
		p.leave(departure{step.Leave, w.key})
		w.Done()
	case contention.Enter:
		e, err := p.enter(w.key, step, done)
		if err != nil { // the process may have entered, or enter, all the same
			p.leave(departure{quorum.Only(step.Node), w.key})
		}
		w.finish(func(l *line, s *contention.Surroundings) {
			switch {
			case err == errGivenUp:
				l.contender.Lost(quorum.Only(step.Node))
			case err != nil:
				l.contender.Failed(s, step.Node)
			default:
				l.contender.Entered(s, step.Node, e)
				if e.Others > 0 {
					l.passes = min(l.passes, l.callers())
				}
			}
		})
	case contention.Watch:
		ttl, err := p.watch(w.key, step.Node, done)
		w.answered(step.Node, err, func(c *contention.Contender, s *contention.Surroundings) { c.Watched(s, step.Node, ttl) })
	case contention.Claim:
		own, left, err := p.claim(w.key, step, done)
		w.answered(step.Node, err, func(c *contention.Contender, s *contention.Surroundings) { c.Claimed(s, own, left) })
	}
}

// answered ends a question of w to a node. report notes the answer, if one came.
func (w *Waiter) answered(node int, err error, report func(*contention.Contender, *contention.Surroundings)) {
	w.finish(func(l *line, s *contention.Surroundings) {
		switch {
		case err == nil:
			report(&l.contender, s)
		case err != errGivenUp:
			l.contender.Failed(s, node)
		}
	})
}

// finish ends what w does for its line: report notes the result there. If w is no longer the actor, since the lock
// was passed on to it, the actor is woken.
func (w *Waiter) finish(report func(l *line, s *contention.Surroundings)) {
	s := w.lines.lock(w.key)
	l := w.acts
	l.busy, w.acts, w.sent = false, nil, false
	around := w.lines.around(l)
	report(l, &around)
	d := w.lines.settle(s, l)
	if next := l.actor(); next != nil && next != w {
		next.bell.ring()
	}
	s.mu.Unlock()
	w.lines.tracking.leave(d)
}

// Done ends what w does for its line, without a result.
func (w *Waiter) Done() { w.finish(func(*line, *contention.Surroundings) {}) }

// Attempted reports the end of an attempt of w: h is its result, and denied the nodes with the key.
func (w *Waiter) Attempted(h holding.Hold, denied quorum.Set, err error) {
	held, won := h.State()
	w.won = w.won || won
	w.finish(func(l *line, s *contention.Surroundings) {
		w.keeps = 0
		l.failed(s.Now, err)
		switch {
		case won:
			l.won(w, s, held.Until, denied)
		case err == engine.ErrTaken:
			l.contender.Refused(s, denied)
		case IsRetryable(err): // no holder has refused it: it must not stand before waiters that can win
			l.contender.Refused(s, 0)
			if w.line == l {
				l.toEnd(w)
			}
		default: // w leaves: the next asks at once
			l.contender.Freed()
		}
	})
}

// Shared notes an attempt for several keys that has not won: the nodes of denied have refused the key of w. It
// reports whether w goes on to wait for its turn. If w had its turn and its key was not refused, it keeps the turn
// for as long as it has waited for it. A kept turn ends once its key is refused.
func (w *Waiter) Shared(denied quorum.Set) (waits bool) {
	acted := w.acts != nil
	report := func(l *line, s *contention.Surroundings) {
		switch {
		case denied != 0 && (acted || w.keeps != 0):
			w.keeps = 0
			l.failed(s.Now, engine.ErrTaken)
			l.contender.Refused(s, denied)
		case acted:
			if until := cmp.Or(w.keeps, l.keep(s.Now, s.Now.Sub(w.stood))); l.contender.Keep(s, until) {
				w.keeps = until
			}
		default:
			l.contender.Asked(s)
		}
	}
	if acted {
		w.finish(report)
		return w.keeps == 0
	}
	s := w.lines.lock(w.key)
	defer s.mu.Unlock()
	if l := w.line; l != nil && l.actor() == w && !l.busy {
		around := w.lines.around(l)
		report(l, &around)
	}
	return w.keeps == 0
}

// HasSomeTurns reports whether a caller has its turn in some of its places and waits for it in others.
func HasSomeTurns(all []*Waiter) bool {
	some, lacks := false, false
	for _, w := range all {
		if w != nil {
			has := w.hasTurn()
			some, lacks = some || has, lacks || !has
		}
	}
	return some && lacks
}

// hasTurn reports whether w has its turn, or its key is left free for those without one.
func (w *Waiter) hasTurn() bool {
	if w.acts != nil || w.keeps != 0 {
		return true
	}
	s := w.lines.lock(w.key)
	defer s.mu.Unlock()
	return w.line.contender.IsFree(w.lines.cfg.Clock.Now())
}

// KeepTurns has a caller keep its new turns.
func KeepTurns(all []*Waiter) {
	for _, w := range all {
		if w != nil && w.acts != nil {
			w.Shared(0)
		}
	}
}

// Left leaves, with the lock of h if the last attempt of w has brought it. How a vain attempt ended says nothing to the
// line: the caller wants other keys too.
func (w *Waiter) Left(h holding.Hold) {
	if w.acts != nil && !h.IsZero() {
		w.Attempted(h, 0, nil)
	}
	w.Leave()
}

// AwaitSent waits for the end of the call of w if a release has taken it along, and reports whether the call was
// sent. A release without room for it has not. No user code runs here, since it might panic: the call has one end to
// wait for.
func (w *Waiter) AwaitSent() bool {
	s := w.lines.lock(w.key)
	sent := w.sent
	w.rests = false // no release takes it along any more
	s.mu.Unlock()
	if !sent {
		return false
	}
	w.call.Wait()
	s = w.lines.lock(w.key)
	w.sent = false
	s.mu.Unlock()
	return w.call.Err != engine.ErrBusy
}

// isAway reports whether w does nothing for its line: its goroutine is in user code, or all callers of its choice
// act.
func (w *Waiter) isAway() bool { return w.away || w.place != nil && w.place.choice.idle.Load() == 0 }

// Aside calls f, user code that may block. Meanwhile the next in each of the caller's lines acts in its place.
func Aside(f func(), all ...*Waiter) {
	setAway(all, true)
	defer setAway(all, false)
	f()
}

func setAway(all []*Waiter, is bool) {
	for _, w := range all {
		if w == nil {
			continue
		}
		s := w.lines.lock(w.key)
		w.away = is
		if is && w.line != nil && !w.line.busy {
			w.line.wake()
		}
		s.mu.Unlock()
	}
}

// Leave takes w out of its line, for another caller to use. A lock passed on to it meanwhile, and not taken, is
// released, and so passes on. If w still acts, it ends this first: a panic has ended its caller, or the context has
// while its call was on its way.
func (w *Waiter) Leave() {
	l := w.lines
	s := l.lock(w.key)
	for w.rests = false; w.acts != nil; w.rests = false { // a release may send its call along until the last moment
		s.mu.Unlock()
		if w.AwaitSent() && w.call.Err == nil {
			l.cfg.Engine.Discount(&w.call.Op, context.Canceled)
		}
		w.finish(func(l *line, _ *contention.Surroundings) { l.contender.Freed() })
		s.mu.Lock()
	}
	handed, line := w.handed, w.line
	var d departure
	if line != nil {
		acted := line.actor() == w
		if w.keeps != 0 {
			line.contender.Freed()
		}
		line.remove(w)
		d = l.settle(s, line)
		if acted {
			line.wake()
		}
	}
	s.mu.Unlock()
	l.tracking.leave(d)
	if w.won && !handed.IsZero() { // both: the nodes have lost keys. The passed lock goes to no other caller
		handed.ShowToken()
	}
	if !handed.IsZero() {
		l.cfg.Release(handed)
	}
	l.waiting.Add(-1) // only now: Close leaves the queues, and ends the connections, when none waits
	l.hasLeft()
	if w.whole || w.place != nil { // a caller may report to it yet
		return
	}
	w.key, w.call, w.handed, w.won = "", nil, holding.Hold{}, false
	select {
	case <-w.bell.rung:
	default:
	}
	l.pool.Put(w)
}
