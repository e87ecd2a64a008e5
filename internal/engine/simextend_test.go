package engine

import (
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/lease"
	"github.com/redlock-go/redlock/quorum"
)

// extra is an extend beside others of the same lock.
type extra struct {
	Op
	session *session
	lock    *lock
	slot    int
	asked   time.Duration
}

// extending chooses a TTL and notes that an extend is about to be submitted. From
// here on its holder may count on no more than that: the nodes may have it long
// before the votes are known.
func (s *session) extending() (ttl time.Duration, slot int) {
	w, l := s.world, s.lock
	ttl = l.ttl
	if w.rules.shrinks {
		ttl = w.between(10*time.Millisecond, 200*time.Millisecond)
	}
	l.extends++
	slot = l.lease.Extending(l.life, quorum.Until(s.client.clock.Now(), ttl.Truncate(time.Millisecond)))
	l.believe()
	return ttl, slot
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
		x.TTL, x.slot = s.extending()
		w.note("extra", c.index, 0, l.number)
		w.check.submitted(c, l, Extend)
		c.pending++
		if err := c.engine.Submit(&x.Op); err != nil {
			c.pending--
			l.extended(x.slot, lease.Unsent)
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
		l.extended(x.slot, resultOf(op.Err))
	})
}

// resultOf is what an extend means for its lease.
func resultOf(err error) lease.Result {
	switch {
	case err == nil:
		return lease.Won
	case errors.Is(err, ErrNotHeld):
		return lease.Lost
	}
	return lease.Unknown
}

// extended notes the result of an extend.
func (l *lock) extended(slot int, r lease.Result) {
	l.lease.Extended(l.life, slot, r)
	if l.believe(); r == lease.Won && l.holding && l.until > l.client.world.now() {
		l.client.world.check.prolonged(l)
	}
}

// believe has the holder count on what its lease says.
func (l *lock) believe() {
	if _, _, until, _, ok := l.lease.Get(l.life); ok {
		l.until = l.client.clock.truth(until)
	}
}
