package holding

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/renewal"
)

// renewing is a renewal that is under way: an extend for each key of a lock.
type renewing struct {
	inbox *inbox
	parts []part
	left  atomic.Int32 // parts without a result

	entry *entry
	seq   uint16 // the entry's, when it began
	hold  Hold
	began time.Duration
	next  *renewing // in the inbox
}

// part is the extend of one key.
type part struct {
	engine.Op
	of   *renewing
	site Site
}

// Complete implements engine.Completion. A driver calls it, under its lock.
func (p *part) Complete(*engine.Op) {
	if p.of.left.Add(-1) == 0 {
		p.of.inbox.put(p.of)
	}
}

const leastTimeout = 2 * time.Millisecond

// prepare makes the parts; an error means that the TTL is wrong. The nodes have half of the
// validity that is left at most, so that there is time for another try.
func (r *renewing) prepare(home Site, s *State, tail string, now time.Duration) error {
	keys := s.Several()
	n := max(1, len(keys))
	if cap(r.parts) < n {
		r.parts = make([]part, n) // an Op that was used must not be copied
	}
	r.parts = r.parts[:n]
	r.left.Store(int32(n))
	for i := range r.parts {
		p := &r.parts[i]
		p.of, p.site, p.Done, p.Prompt, p.Part = r, home, p, true, n > 1
		p.Kind, p.TTL, p.Token, p.Tail = engine.Extend, s.TTL, s.Token, tail
		p.SetKey(s.Key)
		if n > 1 {
			p.SetKey(keys[i])
			p.site = s.More.Site(i, home)
		}
		if err := p.site.Engine().Check(&p.Op); err != nil {
			return err
		}
		p.Timeout = min(p.Timeout, max((s.Until-now)/2, leastTimeout))
	}
	return nil
}

func (r *renewing) ttl() time.Duration { return r.parts[0].TTL }

// until is when validity ends if the nodes do as asked.
func (r *renewing) until() time.Duration {
	until := r.parts[0].Until
	for i := range r.parts {
		until = min(until, r.parts[i].Until)
	}
	return until
}

// result is nil if all parts have won; the lock is lost if one is. p is the part that
// decides.
func (r *renewing) result() (p *part, err error) {
	p = &r.parts[0]
	for i := range r.parts {
		if next := engine.Joint(err, r.parts[i].Err); next != err {
			p, err = &r.parts[i], next
		}
	}
	return p, err
}

// clear drops what belongs to the lock.
func (r *renewing) clear() {
	for i := range r.parts {
		r.parts[i].Key, r.parts[i].Repairer, r.parts[i].site = nil, nil, nil
	}
	r.entry, r.hold, r.next = nil, Hold{}, nil
}

// inbox is the renewals that have their result, the last first.
type inbox struct {
	mu   sync.Mutex
	last *renewing
	ring func()
}

func (b *inbox) put(r *renewing) {
	b.mu.Lock()
	first := b.last == nil
	r.next, b.last = b.last, r
	b.mu.Unlock()
	if first {
		b.ring()
	}
}

func (b *inbox) take() (last *renewing) {
	b.mu.Lock()
	defer b.mu.Unlock()
	last, b.last = b.last, nil
	return last
}

// held is the state of a lock as package renewal sees it; not ok, there is none.
func held(s State, ok bool) renewal.Held {
	return renewal.Held{Until: s.Until, TTL: s.TTL, Released: !ok || s.Released}
}

// ResultOf is the result of an extension that ended with err.
func ResultOf(err error) renewal.Result {
	switch err {
	case nil:
		return renewal.Won
	case engine.ErrNotHeld:
		return renewal.Lost
	}
	return renewal.Unknown
}
