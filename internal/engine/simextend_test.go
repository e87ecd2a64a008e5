package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/renewal"
	"github.com/redlock-go/redlock/quorum"
)

// extra is an extend beside others of the same lock.
type extra struct {
	Op
	session *session
	lock    *lock
	extend  extension
	asked   time.Duration
}

// extension is an extend that is under way: by how much, and when validity ends if it wins.
type extension struct{ ttl, until time.Duration }

// extending chooses a TTL for an extend that is about to be submitted.
func (s *session) extending() extension {
	ttl := s.lock.ttl
	if s.world.rules.shrinks {
		ttl = s.world.between(10*time.Millisecond, 200*time.Millisecond)
	}
	ttl = ttl.Truncate(time.Millisecond)
	return extension{ttl, quorum.Until(s.client.clock.Now(), ttl)}
}

// extendMore submits extends of the session's lock, each in a separate Op. Some are
// renewals, which go first.
func (s *session) extendMore() {
	w, c, l := s.world, s.client, s.lock
	if !w.rules.many || !w.chance(40) {
		return
	}
	for range 1 + w.IntN(3) {
		x := &extra{session: s, lock: l, asked: w.now()}
		x.Kind, x.Key, x.Token, x.Done = Extend, fmt.Appendf(nil, "key-%d", l.key), tokenOf(l.number), x
		x.Prompt = w.chance(40)
		x.extend = s.extending()
		x.TTL = x.extend.ttl
		w.note("extra", c.index, 0, l.number)
		c.pending++
		if !x.submit() {
			c.pending--
			l.extended(x.extend, renewal.Unknown)
		}
	}
}

func (x *extra) submit() (queued bool) {
	w, e := x.session.world, x.session.client.engine
	if !x.Prompt {
		w.check.submitted(x.session.client, x.lock, Extend)
		return e.Submit(&x.Op) == nil
	}
	if err := e.Check(&x.Op); err != nil {
		w.check.fail("once", "Check: "+err.Error())
	}
	x.lock.kept = true
	w.check.renewals++
	var ops Ops
	ops.Add(&x.Op)
	if e.Enqueue(ops) != nil {
		return false
	}
	e.Drive()
	return true
}

// Complete implements Completion.
func (x *extra) Complete(op *Op) {
	c, l := x.session.client, x.lock
	c.world.check.votes(c, l, op, x.asked)
	back := func() {
		c.world.note("extra back", c.index, 0, l.number)
		c.pending--
		l.extended(x.extend, resultOf(op.Err))
	}
	if x.Prompt { // the driver calls this
		back()
		return
	}
	c.misbehave(back)
}

func resultOf(err error) renewal.Result {
	switch {
	case err == nil:
		return renewal.Won
	case errors.Is(err, ErrNotHeld):
		return renewal.Lost
	}
	return renewal.Unknown
}

// validity is what the holder of a lock, or of several that are one, may believe in.
type validity struct {
	renewal.Validity
	releases int // that were asked for, and may have been sent
}

// until is the end of validity on the holder's clock.
func (v *validity) until() time.Duration {
	if v.releases > 0 {
		return 0
	}
	return v.Until()
}

// extended notes the result of an extend.
func (l *lock) extended(x extension, r renewal.Result) {
	l.validity.Extended(x.ttl, x.until, r)
	l.prolonged(r)
}

// prolonged has the holder count on what is left after an extend.
func (l *lock) prolonged(r renewal.Result) {
	if l.believe(); r == renewal.Won && l.holding && l.until > l.client.world.now() {
		l.client.world.check.prolonged(l)
	}
}

// believe has the holder count on what it may.
func (l *lock) believe() { l.until = l.client.clock.truth(l.validity.until()) }
