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
	calls *engine.Call
	left  atomic.Int32 // calls without a result
	inbox *inbox

	entry *entry
	seq   uint16 // the entry's, when it began
	hold  Hold
	began clock.Instant
	next  *renewing // in the inbox
}

// Complete implements engine.Completion. A driver calls it for each call, under its lock.
func (r *renewing) Complete(*engine.Op) {
	if r.left.Add(-1) == 0 {
		r.inbox.put(r)
	}
}

const leastTimeout = 2 * time.Millisecond

// prepare makes the calls; an error means a wrong TTL. The nodes have half of the remaining validity at most, so
// there is time for another try.
func (r *renewing) prepare(home *engine.Engine, s *State, tail string, now clock.Instant) (err error) {
	r.calls, err = s.Calls(home, engine.Extend, s.TTL, tail)
	r.left.Store(0)
	r.calls.Each(func(c *engine.Call) {
		c.Done, c.Ends, c.Token = r, engine.Prompt, s.Token
		c.Timeout = min(c.Timeout, max(s.Until.Sub(now)/2, leastTimeout))
		r.left.Add(1)
	})
	return err
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
