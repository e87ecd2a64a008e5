package holding

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/renewal"
)

// renewing is a renewal under way.
type renewing struct {
	Compound
	left  atomic.Int32 // parts without a result
	inbox *inbox

	entry *entry
	seq   uint16 // the entry's, when it began
	hold  Hold
	began clock.Instant
	next  *renewing // in the inbox
}

// Complete implements engine.Completion. A driver calls it for each part, under its lock.
func (r *renewing) Complete(*engine.Op) {
	if r.left.Add(-1) == 0 {
		r.inbox.put(r)
	}
}

const leastTimeout = 2 * time.Millisecond

// prepare makes the parts; an error means a wrong TTL. The nodes have half of the remaining validity at most, so
// there is time for another try.
func (r *renewing) prepare(home Site, s *State, tail string, now clock.Instant) error {
	if err := r.Compose(home, engine.Extend, s, s.TTL, tail); err != nil {
		return err
	}
	r.asked = len(r.Parts())
	r.left.Store(int32(r.asked))
	for _, p := range r.Parts() {
		p.Done, p.Ends, p.Token = r, engine.Prompt, s.Token
		p.Timeout = min(p.Timeout, max(s.Until.Sub(now)/2, leastTimeout))
	}
	return nil
}

// inbox is the renewals with a result, the last first.
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

// stateFor is the state of a lock as package renewal sees it; not ok, there is none.
func stateFor(s State, ok bool) renewal.Held {
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
