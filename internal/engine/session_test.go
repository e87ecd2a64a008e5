package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/renewal"
)

// longestHeld is the longest TTL where TTLs are brief.
const longestHeld = 40 * time.Millisecond

// session is one user of a client: it acquires, extends, releases, cancels and
// forgets, with one Call that it uses again and again.
type session struct {
	client *client
	world  *world
	call   *Call
	lock   *lock
	keeper bool // it extends again and again
	eager  int  // how often it still submits again at once, with any result
	insist int  // the same for extends and releases
	inside bool // its callback runs
	turn   int  // of the world, in which it last submitted
	turns  int  // how often it did so then

	serial  int // of the operation
	pending bool
	doing   bool          // by Do, that is, it waits for the Call's channel
	driving bool          // and is still inside drive
	ended   chan struct{} // closed when its context ends
	asked   time.Duration
	extend  extension // that is under way
}

func newSession(c *client) *session {
	s := &session{client: c, world: c.world, call: &Call{done: make(chan struct{}, 1)}}
	s.keeper = c.world.rules.many && c.world.chance(30)
	if c.world.rules.wild && c.world.chance(30) {
		s.eager, s.insist = 100, 200
	}
	return s
}

// next begins an attempt.
func (s *session) next() {
	w := s.world
	if w.ending || s.client.dead || s.pending {
		return
	}
	ttl := w.between(10*time.Millisecond, 100*time.Millisecond)
	switch {
	case w.rules.brief:
		ttl = w.between(10*time.Millisecond, longestHeld)
	case w.chance(30):
		ttl *= 5
	case w.chance(10):
		ttl *= 100
	}
	s.lock = w.check.newLock(s.client, w.IntN(w.check.keys), ttl)
	s.submit(Acquire)
}

func (s *session) submit(kind Kind) {
	w, c := s.world, s.client
	if s.turn != w.turn {
		s.turn, s.turns = w.turn, 0
	}
	if s.turns++; s.turns > 20 {
		w.check.fail("stuck", "a session submits again and again, and nothing else happens")
		return
	}
	s.serial++
	s.pending, s.doing, s.asked = true, w.chance(40), w.now()
	s.ended = make(chan struct{})
	c.pending++
	op := &s.call.Op
	op.Kind, op.Key, op.Token = kind, fmt.Appendf(nil, "key-%d", s.lock.key), tokenOf(s.lock.number)
	op.TTL, op.Absent = s.lock.ttl, 0
	switch kind {
	case Extend:
		s.extend = s.extending()
		op.TTL = s.extend.ttl
	case Release:
		op.Absent = s.lock.absent
		s.lock.validity.releases++
	}
	w.note("submit", c.index, int(kind), s.lock.number)
	w.check.submitted(c, s.lock, kind)
	serial := s.serial
	switch when := w.IntN(100); {
	case when < 25:
		c.after(w.between(0, 3*time.Millisecond), func() { s.cancel(serial) })
	case !w.rules.wild:
	case when < 30: // while a batch is being sent, perhaps with this in it
		c.fleet.onSend = append(c.fleet.onSend, func() { s.cancel(serial) })
	case when < 35: // while replies are being read, perhaps to this
		c.fleet.onSweep = append(c.fleet.onSweep, func() { s.cancel(serial) })
	case when < 40 && s.doing: // before it begins
		if close(s.ended); kind == Release {
			s.leave()
			return
		}
	}
	if op.Done = s; !s.doing {
		s.lock.loose = kind == Acquire
		s.refused(c.engine.Submit(op))
		return
	}
	// The rest is Do, which blocks, in pieces.
	op.Done, s.call.ended, s.call.over, s.lock.loose = s.call, s.ended, false, kind == Acquire
	if s.refused(c.engine.enqueue(op)) {
		return
	}
	s.driving = true
	c.engine.submitted(kind, c.clock.Now(), s.call)
	s.driving = false
	s.poll()
}

// poll is the rest of Do: it goes on when the Call has ended, and reports
// whether it did.
func (s *session) poll() bool {
	if !s.doing || s.driving || len(s.call.done) == 0 {
		return false
	}
	<-s.call.done
	switch {
	case !s.pending:
		s.world.check.fail("once", "a Call came back, and was not under way")
	case s.call.over:
		s.back(context.Canceled)
	default:
		s.world.check.votes(s.client, s.lock, &s.call.Op, s.asked)
		s.back(s.call.Err)
	}
	return true
}

// back ends what is pending.
func (s *session) back(err error) {
	s.world.note("back", s.client.index, int(s.call.Kind), s.lock.number)
	if op := &s.call.Op; op.Kind == Release && (err == context.Canceled && !s.doing || errors.Is(err, ErrClosed)) {
		s.lock.forgotten = true // it may not have been sent
	}
	if s.doing && !IsClosed(s.ended) && s.world.chance(10) {
		close(s.ended) // too late
	}
	s.pending, s.doing = false, false
	s.client.pending--
	s.proceed(err)
}

// leave is a release whose context has ended before it was asked for.
func (s *session) leave() {
	s.world.note("leave", s.client.index, 0, s.lock.number)
	s.call.Op.Done, s.lock.loose = s.call, false
	if !s.refused(s.client.engine.Leave(s.call)) {
		s.doing = false
		s.back(nil)
	}
}

// refused deals with an error of Submit.
func (s *session) refused(err error) bool {
	if err == nil {
		return false
	}
	if err != ErrBusy && (err != ErrClosed || !s.client.dead) {
		s.world.check.fail("once", "Submit: "+err.Error())
	}
	s.pending, s.inside = false, false
	s.client.pending--
	s.world.note("refused", s.client.index, s.lock.number, 0)
	switch s.call.Kind {
	case Release:
		s.lock.validity.releases--
		s.lock.forgotten = true
	case Extend:
		s.lock.extended(s.extend, renewal.Unknown)
		s.lock.forgotten = true
	}
	s.pause()
	return true
}

// cancel takes an operation back, unless it has come back already.
func (s *session) cancel(serial int) {
	w, c := s.world, s.client
	switch {
	case !s.pending || s.serial != serial:
		return
	case s.doing && IsClosed(s.ended):
		return
	case s.doing:
		close(s.ended) // and the engine finds out
		w.after(tickLate, func() {
			if s.pending && s.serial == serial && c.busy == 0 && c.ran(tickLate) {
				w.check.fail("stuck", "a call does not end with its context")
			}
		})
		return
	}
	op := &s.call.Op
	if op.Kind == Acquire {
		w.check.submitted(c, s.lock, Release) // if it comes to that
	}
	if !c.engine.Cancel(op) {
		w.note("too late", c.index, s.lock.number, 0)
		return
	}
	w.note("cancel", c.index, int(op.Kind), s.lock.number)
	if w.rules.deafCancel {
		return
	}
	if !s.pending || s.serial != serial {
		w.check.fail("once", "cancelled and completed")
		return
	}
	s.back(context.Canceled)
}

// Complete implements Completion.
func (s *session) Complete(op *Op) {
	w := s.world
	if !s.pending || s.doing || op != &s.call.Op {
		w.check.fail("once", "completed, but not under way")
		return
	}
	w.check.votes(s.client, s.lock, op, s.asked)
	// The cleanup of an acquire that has failed was queued before this.
	s.lock.loose = op.Kind == Acquire && op.Err != nil
	s.client.misbehave(func() {
		s.inside = true
		s.back(op.Err)
		s.inside = false
	})
}

// proceed goes on with the result of an operation.
func (s *session) proceed(err error) {
	w, op, l := s.world, &s.call.Op, s.lock
	now := s.client.clock.Now()
	switch {
	case op.Kind == Acquire && err == nil && now >= op.Until:
		w.check.submitted(s.client, l, Release)
		l.over = true
		s.client.engine.Abandon(op)
		s.pause()
	case op.Kind == Acquire && err == nil:
		l.validity, l.absent = &validity{Validity: renewal.Begin(op.TTL, op.Until)}, op.Absent
		w.check.acquired(l)
		s.hold()
	case op.Kind == Acquire:
		l.over = true
		s.pause()
	case op.Kind == Extend:
		if l.extended(s.extend, resultOf(err)); errors.Is(err, ErrNotHeld) {
			s.release()
		} else if err != nil && s.again() && w.now() < l.until {
			s.submit(Extend)
		} else if err != nil && w.rules.many && w.chance(70) && now < op.Until {
			s.client.after(w.between(0, 500*time.Microsecond), func() {
				switch {
				case s.pending || s.lock != l || s.client.dead:
				case w.now() < l.until:
					s.submit(Extend)
				default:
					s.hold()
				}
			})
		} else {
			s.hold()
		}
	case err != nil && s.again():
		s.submit(Release)
	default:
		s.pause()
	}
}

// again reports whether a callback submits again at once.
func (s *session) again() bool {
	if s.turn == s.world.turn && s.turns > 2 {
		return false // callbacks take no time here
	}
	if s.call.Kind != Acquire && s.insist > 0 && s.inside && !s.client.dead && !s.world.ending {
		s.insist--
		return true
	}
	if s.eager == 0 || !s.inside || s.client.dead || s.world.ending {
		return false
	}
	s.eager--
	return true
}

// pause waits before the next attempt, or not at all.
func (s *session) pause() {
	if s.again() {
		s.next()
	} else if w := s.world; w.chance(20) && len(w.history) < maxHistory/2 && s.call.Err == nil {
		s.next()
	} else {
		s.client.after(w.between(0, 10*time.Millisecond), s.next)
	}
}

// hold keeps the lock for a while and then does something with it.
func (s *session) hold() {
	w, l := s.world, s.lock
	d := w.between(0, 2*time.Millisecond)
	switch {
	case w.chance(40):
		d = w.between(0, l.ttl/2)
	case w.chance(20):
		d = w.between(0, l.ttl*3/2)
	}
	serial := s.serial
	s.client.after(d, func() {
		if s.pending || s.serial != serial || s.client.dead {
			return
		}
		switch {
		case w.now() < l.until && w.now() < 10*time.Second && (s.keeper && w.chance(80) || w.chance(30)): // not for ever
			s.extendMore()
			s.submit(Extend)
		case w.chance(85):
			s.release()
		default:
			w.note("forget", s.client.index, l.number, 0)
			l.forgotten = true
			s.pause()
		}
	})
}

func (s *session) release() {
	w, c := s.world, s.client
	s.lock.holding, s.lock.over = false, true
	switch {
	case c.dead:
	case w.chance(10):
		s.discard()
	default:
		s.submit(Release)
	}
}

// discard is a release for which the session does not wait.
func (s *session) discard() {
	w, c, l := s.world, s.client, s.lock
	call := &Call{done: make(chan struct{}, 1)}
	call.Kind, call.Key, call.Token, call.Absent, call.Done = Release, fmt.Appendf(nil, "key-%d", l.key), tokenOf(l.number), l.absent, call
	l.validity.releases++
	w.note("discard", c.index, 0, l.number)
	w.check.discards++
	w.check.submitted(c, l, Release)
	c.engine.Discard(call)
	c.engine.Drive()
	s.serial++
	s.pause()
}
