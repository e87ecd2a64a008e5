package floor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/redlock-go/redlock/bench/harness"
)

// crew runs the batches of a plan for goroutines that block, one a lock. It is
// a [harness.Pool]. A goroutine that wants its next step parks on a channel of
// its own. The one that completes the batch takes the step for all, and wakes
// the others when a quorum has answered. So a lone goroutine never parks.
type crew struct {
	s      *session
	take   func(step int) error
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

func newCrew(s *session) *crew { return &crew{s: s, take: s.take} }

func newPlace(c *crew) place { return place{crew: c, wake: make(chan struct{}, 1)} }

func (c *crew) Worker() (harness.Worker, error) {
	p := newPlace(c)
	c.places = append(c.places, &p)
	return &p, nil
}

// Acquire implements [harness.Worker]. The keys are the plan's.
func (p *place) Acquire(context.Context, string) (bool, error) {
	err := p.next()
	return err == nil, err
}

func (p *place) Release(context.Context) error { return p.next() }

// Leave implements [harness.Leaver]. The others continue with whole batches. The last to come or to leave takes them.
func (p *place) Leave() {
	p.left = true
	_ = p.next()
}

// next returns when the next step of the batch is over.
//
// No lock is needed: a goroutine writes only before it adds itself to here, and
// the leader sees all of them there, and writes before it wakes them.
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
		c.err = broken(c.take(c.steps))
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
