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

func open(ctx context.Context, cfg harness.Config, p *plan, goroutines bool) (harness.Session, error) {
	w, err := dial(ctx, cfg.Nodes, p.setup, p.ready, bytes.Join(p.replies, nil))
	if err != nil {
		return nil, err
	}
	s := &session{wire: w, plan: p}
	if goroutines {
		return &crew{s: s}, nil
	}
	return s, nil
}

// Run implements [harness.Runner]. It acquires a batch, releases it, and so on with
// the next. One OS thread does everything; the context needs no watching, because no
// wait is longer than patience.
func (s *session) Run(_ context.Context, probe *harness.Probe) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
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
