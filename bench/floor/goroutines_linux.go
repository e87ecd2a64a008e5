package floor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redlock-go/redlock/bench/harness"
)

// crew runs the batches of a plan for goroutines that block, one a lock. It is
// a [harness.Pool]. A goroutine that wants its next step parks on a channel of
// its own. The one that completes the batch takes the step for all, and wakes
// the others when a quorum has answered. So a lone goroutine never parks.
type crew struct {
	s      *session
	places []*place
	here   atomic.Int64 // goroutines that want the next step, and those that have left
	steps  int
	err    error // ends every step from then on
}

// place is one goroutine's. Its channel holds one.
type place struct {
	crew *crew
	wake chan struct{}
	left bool
}

// Worker implements [harness.Pool].
func (c *crew) Worker() (harness.Worker, error) {
	c.places = append(c.places, &place{crew: c, wake: make(chan struct{}, 1)})
	return c.places[len(c.places)-1], nil
}

// Acquire implements [harness.Worker]. The keys are the plan's.
func (p *place) Acquire(context.Context, string) (bool, error) {
	err := p.next()
	return err == nil, err
}

// Release implements [harness.Worker].
func (p *place) Release(context.Context) error { return p.next() }

// Leave implements [harness.Leaver]. The steps of the others go on with whole
// batches. The last to come or to leave takes them.
func (p *place) Leave() {
	p.left = true
	_ = p.next()
}

// next returns when the next step of the batch is over.
//
// No lock is needed: a goroutine writes only before it adds itself to here, and
// the leader, who sees all of them there, writes before it wakes them.
func (p *place) next() error {
	c := p.crew
	if c.here.Add(1) < int64(len(c.places)) {
		if p.left {
			return nil
		}
		<-p.wake
		return c.err
	}
	return c.lead(p)
}

// lead takes the next step and wakes the others. A leader that leaves is not
// waited for from then on, so it touches nothing afterwards.
func (c *crew) lead(leader *place) error {
	gone := int64(0)
	for _, p := range c.places {
		if p.left {
			gone++
		}
	}
	if c.err == nil && gone < int64(len(c.places)) {
		request := c.s.plan.requests[c.steps%len(c.s.plan.requests)]
		c.err = broken(c.s.step(request, len(c.s.plan.replies[c.steps%2])))
		c.steps++
	}
	err := c.err
	c.here.Store(gone)
	for _, p := range c.places {
		if p != leader && !p.left {
			p.wake <- struct{}{}
		}
	}
	return err
}

// Close implements [harness.Session].
func (c *crew) Close() error {
	if c.err != nil {
		return c.s.Close()
	}
	return errors.Join(c.s.settle(), c.s.Close())
}

// broken marks an error after which the session can do nothing.
func broken(err error) error {
	if err != nil {
		err = fmt.Errorf("%w: %w", harness.ErrBroken, err)
	}
	return err
}

// relay passes one lock from goroutine to goroutine. It is a [harness.Pool].
// The holder's release takes the lock for the one that has waited longest, in
// the same write.
type relay struct {
	s    *session
	mu   sync.Mutex // of all but the session, which is the holder's
	wait []*runner
	idle bool // no goroutine has the lock
	err  error
}

// runner is a goroutine that takes part. Its channel holds one.
type runner struct {
	relay *relay
	wake  chan struct{}
}

// Worker implements [harness.Pool].
func (r *relay) Worker() (harness.Worker, error) {
	r.idle = true
	return &runner{r, make(chan struct{}, 1)}, nil
}

// Acquire implements [harness.Worker].
func (n *runner) Acquire(context.Context, string) (bool, error) {
	r := n.relay
	r.mu.Lock()
	if r.err == nil && r.idle {
		r.idle = false
		r.mu.Unlock()
		err := r.turn()
		return err == nil, err
	}
	if r.err == nil {
		r.wait = append(r.wait, n)
		r.mu.Unlock()
		<-n.wake
		r.mu.Lock()
	}
	defer r.mu.Unlock()
	return r.err == nil, r.err
}

// Release implements [harness.Worker].
func (n *runner) Release(context.Context) error {
	r := n.relay
	r.mu.Lock()
	if len(r.wait) == 0 {
		r.idle = true
		r.mu.Unlock()
		return nil
	}
	next := r.wait[0]
	r.wait = append(r.wait[:0], r.wait[1:]...)
	r.mu.Unlock()
	err := r.turn()
	next.wake <- struct{}{}
	return err
}

// turn gives the lock to the next goroutine. An error wakes all of them.
func (r *relay) turn() error {
	err := broken(r.s.turn())
	r.s.turns++
	if err == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	for _, n := range r.wait {
		n.wake <- struct{}{}
	}
	r.wait = nil
	return err
}

// Close implements [harness.Session].
func (r *relay) Close() error {
	if r.err != nil {
		return r.s.Close()
	}
	return errors.Join(r.s.giveBack(), r.s.Close())
}
