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
	plan *plan
}

func open(ctx context.Context, cfg harness.Config, p *plan) (harness.Session, error) {
	w, err := dial(ctx, cfg.Nodes, p.setup, p.ready, bytes.Join(p.replies, nil))
	if err != nil {
		return nil, err
	}
	return &session{w, p}, nil
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
	var due int64
	start := time.Now()
	for i := 0; probe.Running(); i = (i + 2) % len(s.plan.requests) {
		var middle time.Time
		for step, reply := range s.plan.replies {
			if step > 0 {
				middle = time.Now()
			}
			due += int64(len(reply))
			if err := s.send(s.plan.requests[i+step]); err != nil {
				return err
			}
			if err := s.await(due); err != nil {
				return err
			}
		}
		end := time.Now()
		probe.Pairs(s.plan.batch, end.Sub(start))
		probe.Apart(s.plan.batch, middle.Sub(start), end.Sub(middle))
		start = end
	}
	return s.settle(due)
}

// handOver passes one lock from waiter to waiter. Each of them queues up again
// when it has released, so it waits for as many turns as there are waiters.
func (s *session) handOver(probe *harness.Probe) error {
	var due int64
	queued := make([]time.Time, s.plan.waiters)
	for i := range queued {
		queued[i] = time.Now()
	}
	// It ends where the requests begin anew: cleanup is about the last one's
	// token.
	for i := 0; i%len(s.plan.requests) != 0 || probe.Running(); i++ {
		due += int64(len(s.plan.replies[0]))
		if err := s.send(s.plan.requests[i%len(s.plan.requests)]); err != nil {
			return err
		}
		if err := s.await(due); err != nil {
			return err
		}
		now, turn := time.Now(), i%len(queued)
		probe.Pairs(1, now.Sub(queued[turn]))
		queued[turn] = now
	}
	// The last lock is released alone; the answer begins like any other.
	if err := s.send(s.plan.cleanup); err != nil {
		return err
	}
	return s.settle(due + int64(len(s.plan.gone)))
}

// settle waits for the nodes that are late, so that every reply of the cell has
// been checked, and no key outlives it because its release was cut off with the
// connection. A node that hangs may stay behind: a quorum was enough all along.
func (s *session) settle(due int64) error {
	s.quorum = len(s.fds)
	if err := s.await(due); !errors.Is(err, errNoQuorum) {
		return err
	}
	return nil
}
