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

func open(ctx context.Context, cfg harness.Config, p *plan, d Driver) (harness.Session, error) {
	w, err := dial(ctx, cfg.Nodes, p.setup, p.ready, bytes.Join(p.replies, nil))
	if err != nil {
		return nil, err
	}
	s := &session{wire: w, plan: p}
	switch {
	case d.Obliged:
		return newObliged(s, cfg), nil
	case d.Goroutines:
		return newCrew(s), nil
	}
	return s, nil
}

// take is the step of the plan with that number.
func (s *session) take(step int) error {
	return s.step(s.plan.requests[step%len(s.plan.requests)], len(s.plan.replies[step%2]))
}

// Run implements [harness.Runner]. It acquires a batch, releases it, and so on with
// the next. One OS thread does everything; the context needs no watching, because no
// wait is longer than patience.
func (s *session) Run(_ context.Context, probe *harness.Probe) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := time.Now()
	for step := 0; probe.Running(); step += 2 {
		if err := s.take(step); err != nil {
			return err
		}
		middle := time.Now()
		if err := s.take(step + 1); err != nil {
			return err
		}
		end := time.Now()
		probe.Pairs(s.plan.batch, end.Sub(start))
		probe.Apart(s.plan.batch, middle.Sub(start), end.Sub(middle))
		start = end
	}
	return s.settle()
}

// settle waits for the nodes that are late, so that every reply of the cell has
// been checked, and no key outlives it because its release was cut off with the
// connection. A node that hangs is left out: a quorum was enough all the time.
func (s *session) settle() error {
	s.quorum = s.alive()
	if err := s.await(s.due); !errors.Is(err, errNoQuorum) {
		return err
	}
	return nil
}
