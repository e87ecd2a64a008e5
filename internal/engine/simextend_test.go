package engine

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// extra is an extend beside others of the same lock.
type extra struct {
	Op
	session *session
	lock    *lock
	extend  *extension
	asked   time.Duration
}

// extending chooses a TTL and notes that an extend is about to be submitted. From
// here on its holder may count on no more than that: the nodes may have it long
// before the votes are known.
func (s *session) extending() (ttl time.Duration, x *extension) {
	w, l := s.world, s.lock
	ttl = l.ttl
	if w.rules.shrinks {
		ttl = w.between(10*time.Millisecond, 200*time.Millisecond)
	}
	l.extends++
	x = l.validity.extending(quorum.Until(s.client.clock.Now(), ttl.Truncate(time.Millisecond)))
	l.believe()
	return ttl, x
}

// extendMore submits extends of the session's lock, each in an Op of its own.
func (s *session) extendMore() {
	w, c, l := s.world, s.client, s.lock
	if !w.rules.many || !w.chance(40) {
		return
	}
	for range 1 + w.IntN(3) {
		x := &extra{session: s, lock: l, asked: w.now()}
		x.Kind, x.Key, x.Token, x.Done = Extend, fmt.Appendf(nil, "key-%d", l.key), tokenOf(l.number), x
		x.TTL, x.extend = s.extending()
		w.note("extra", c.index, 0, l.number)
		w.check.submitted(c, l, Extend)
		c.pending++
		if err := c.engine.Submit(&x.Op); err != nil {
			c.pending--
			l.extended(x.extend, unsent)
		}
	}
}

// Complete implements Completion.
func (x *extra) Complete(op *Op) {
	c, l := x.session.client, x.lock
	c.world.check.votes(c, l, op, x.asked)
	c.misbehave(func() {
		c.world.note("extra back", c.index, 0, l.number)
		c.pending--
		l.extended(x.extend, resultOf(op.Err))
	})
}

// result is the result of an extend.
type result int

const (
	unsent   result = iota // no node has heard of it
	unknown                // nodes may apply it, or may not
	extended               // a quorum has applied it
	lost                   // too few nodes have the key
)

func resultOf(err error) result {
	switch {
	case err == nil:
		return extended
	case errors.Is(err, ErrNotHeld):
		return lost
	}
	return unknown
}

// validity is a model of what a holder may believe in. Where extends overlap, it is
// not known which of them the nodes applied last.
type validity struct {
	confirmed time.Duration // its end, by what the nodes have confirmed
	underWay  []*extension
	releases  int // that were asked for, and may have been sent
}

// extension is an extend that is under way.
type extension struct {
	until time.Duration // the end of validity, if it is the last that the nodes apply
	least time.Duration // of this and those that overlap it
}

func (v *validity) extending(until time.Duration) *extension {
	x := &extension{until, until}
	for _, other := range v.underWay {
		x.least, other.least = min(x.least, other.until), min(other.least, until)
	}
	v.underWay = append(v.underWay, x)
	return x
}

func (v *validity) extended(x *extension, r result) {
	v.underWay = slices.DeleteFunc(v.underWay, func(other *extension) bool { return other == x })
	switch {
	case r == lost || v.confirmed == 0: // once lost, for ever
		v.confirmed = 0
	case r == extended:
		v.confirmed = x.least
	case r == unknown:
		v.confirmed = min(v.confirmed, x.until)
	}
}

// until is the end of validity on the holder's clock.
func (v *validity) until() time.Duration {
	if v.releases > 0 {
		return 0
	}
	until := v.confirmed
	for _, x := range v.underWay {
		until = min(until, x.until)
	}
	return until
}

// extended notes the result of an extend.
func (l *lock) extended(x *extension, r result) {
	l.validity.extended(x, r)
	if l.believe(); r == extended && l.holding && l.until > l.client.world.now() {
		l.client.world.check.prolonged(l)
	}
}

// believe has the holder count on what it may.
func (l *lock) believe() { l.until = l.client.clock.truth(l.validity.until()) }
