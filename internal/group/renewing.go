package group

import (
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/renewal"
	"github.com/redlock-go/redlock/quorum"
)

// renewing is a renewal that is under way: an extend for each key of a lock.
type renewing struct {
	inbox *inbox
	group *Group
	parts []part
	left  int // parts without a result; the driver's

	entry     *entry
	seq       uint16 // the entry's, when it began
	lease     *lease
	life      uint64
	extension *renewal.Extension
	began     time.Duration
	next      *renewing // in the inbox
}

// part is the extend of one key.
type part struct {
	engine.Op
	of *renewing
}

// Complete implements engine.Completion. The driver calls it, under its lock.
func (p *part) Complete(*engine.Op) {
	if p.of.left--; p.of.left == 0 {
		p.of.inbox.put(p.of)
	}
}

// prepare makes the parts, or says what is wrong with the TTL. The nodes have half of the
// validity that is left at most, so that there is time for another try.
func (r *renewing) prepare(g *Group, s *state, now time.Duration) error {
	r.group = g
	n := 1
	if s.more != nil && s.more.keys != nil {
		n = len(s.more.keys)
	}
	if cap(r.parts) < n {
		r.parts = make([]part, n) // an Op that was used must not be copied
	}
	r.parts = r.parts[:n]
	r.left = n
	for i := range r.parts {
		p := &r.parts[i]
		p.of, p.Done, p.Prompt, p.Part = r, p, true, n > 1
		p.Kind, p.TTL, p.Token, p.Tail = engine.Extend, s.ttl, s.token, g.tailOf(s)
		p.SetKey(s.key)
		if n > 1 {
			p.SetKey(s.more.keys[i])
		}
		if err := g.engine.Check(&p.Op); err != nil {
			return err
		}
		p.Timeout = min(p.Timeout, max((s.until-now)/2, leastTimeout))
	}
	return nil
}

const leastTimeout = 2 * time.Millisecond

func (r *renewing) ttl() time.Duration { return r.parts[0].TTL }

// about says which lock the parts are about.
func (r *renewing) about(e *entry, x *renewal.Extension) {
	for i := range r.parts {
		p := &r.parts[i]
		p.Before, p.Repairer, p.Life = x.Before(), e.lease, e.life
	}
}

// add adds the parts to what is to be queued.
func (r *renewing) add(ops *engine.Ops) {
	for i := range r.parts {
		ops.Add(&r.parts[i].Op)
	}
}

// result is nil if all parts have won; the lock is lost if one is.
func (r *renewing) result() (err error) {
	for i := range r.parts {
		err = engine.Joint(err, r.group.errorOf(&r.parts[i].Op))
	}
	return err
}

// clear lets go of what belongs to the lock.
func (r *renewing) clear() {
	for i := range r.parts {
		r.parts[i].Key, r.parts[i].Repairer = nil, nil
	}
	r.entry, r.lease, r.extension, r.next = nil, nil, nil, nil
}

// inbox is the renewals that have their result, the last first.
type inbox struct {
	mu   sync.Mutex
	last *renewing
	wake func()
}

func (b *inbox) put(r *renewing) {
	b.mu.Lock()
	first := b.last == nil
	r.next, b.last = b.last, r
	b.mu.Unlock()
	if first {
		b.wake()
	}
}

func (b *inbox) take() (last *renewing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last, b.last = b.last, nil
	return last
}

// held is the state of a lock as package renewal sees it; not ok, if there is none.
func held(s state, ok bool) renewal.Held {
	return renewal.Held{Until: s.until, TTL: s.ttl, Released: !ok || s.released}
}

// began is when the TTL of a lock was asked for.
func began(s state) time.Duration { return s.until - s.ttl + quorum.Drift(s.ttl) }
