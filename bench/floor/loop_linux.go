package floor

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/redlock-go/redlock/bench/harness"
)

// session runs a plan over a wire. It is a [harness.Runner].
type session struct {
	*wire
	plan  *plan
	turns int // of a hot key
}

func open(ctx context.Context, cfg harness.Config, p *plan, goroutines bool) (harness.Session, error) {
	w, err := dial(ctx, cfg.Nodes, p.setup, p.ready, bytes.Join(p.replies, nil))
	if err != nil {
		return nil, err
	}
	s := &session{wire: w, plan: p}
	switch {
	case goroutines && p.waiters > 0:
		return &relay{s: s}, nil
	case goroutines:
		return &crew{s: s}, nil
	}
	return s, nil
}

// Run implements [harness.Runner]. One OS thread does everything; the context
// needs no watching, because no wait is longer than patience.
func (s *session) Run(_ context.Context, probe *harness.Probe) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if s.plan.waiters > 0 {
		return s.handOver(probe)
	}
	return s.batches(probe)
}

// batches acquires a batch, releases it, and so on with the next.
func (s *session) batches(probe *harness.Probe) error {
	start := time.Now()
	for i := 0; probe.Running(); i = (i + 2) % len(s.plan.requests) {
		if err := s.step(s.plan.requests[i], len(s.plan.replies[0])); err != nil {
			return err
		}
		middle := time.Now()
		if err := s.step(s.plan.requests[i+1], len(s.plan.replies[1])); err != nil {
			return err
		}
		end := time.Now()
		probe.Pairs(s.plan.batch, end.Sub(start))
		probe.Apart(s.plan.batch, middle.Sub(start), end.Sub(middle))
		start = end
	}
	return s.settle()
}

// handOver passes one lock from waiter to waiter. Each of them queues up again
// when it has released, so it waits for as many turns as there are waiters.
func (s *session) handOver(probe *harness.Probe) error {
	queued := make([]time.Time, s.plan.waiters)
	for i := range queued {
		queued[i] = time.Now()
	}
	for ; probe.Running(); s.turns++ {
		if err := s.turn(); err != nil {
			return err
		}
		now, waiter := time.Now(), s.turns%len(queued)
		probe.Pairs(1, now.Sub(queued[waiter]))
		queued[waiter] = now
	}
	return s.giveBack()
}

// turn releases the lock, and takes it for the next waiter.
func (s *session) turn() error {
	return s.step(s.plan.requests[s.turns%len(s.plan.requests)], len(s.plan.replies[0]))
}

// giveBack goes on to where the requests begin anew, since cleanup is about the
// last one's token, and releases the lock alone. The answer begins like any other.
func (s *session) giveBack() error {
	for ; s.turns%len(s.plan.requests) != 0; s.turns++ {
		if err := s.turn(); err != nil {
			return err
		}
	}
	s.due += int64(len(s.plan.gone))
	if err := s.send(s.plan.cleanup); err != nil {
		return err
	}
	return s.settle()
}

// settle waits for the nodes that are late, so that every reply of the cell has
// been checked, and no key outlives it because its release was cut off with the
// connection. A node that hangs may stay behind: a quorum was enough all along.
func (s *session) settle() error {
	s.quorum = s.alive()
	if err := s.await(s.due); !errors.Is(err, errNoQuorum) {
		return err
	}
	return nil
}
