package group

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/texts"
	"github.com/redlock-go/redlock/quorum"
)

// readiness wakes the callers that wait for a quorum of nodes. The driver lock protects it.
type readiness struct {
	changed chan struct{} // closed when a node comes up; nil while no goroutine waits
}

// nodeUp wakes all of them: a node is up, or has its fenced vote.
func (r *readiness) nodeUp() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// leastWait is how long Ready waits at least before it looks at a quarantine again.
const leastWait = 10 * time.Millisecond

// Ready waits until a quorum of nodes is up and may vote, until ctx ends, or until the group is
// closed. It is woken when a node comes up, and at the end of a quarantine.
func (g *Group) Ready(ctx context.Context) error {
	ctx = orBackground(ctx)
	for {
		changed, soonest, why := g.look()
		if why == nil || why == engine.ErrClosed {
			return why
		}
		if ctx.Err() != nil {
			return texts.NotReady(ctx, why)
		}
		timer := time.NewTimer(max(leastWait, soonest))
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		case <-g.ending:
		}
		timer.Stop()
	}
}

// look returns why the group is not ready, an ErrNoQuorum with the nodes that cannot vote, and
// when it may be: once changed is closed, or after soonest.
func (g *Group) look() (changed <-chan struct{}, soonest time.Duration, why error) {
	op := engine.Op{Err: engine.ErrNoQuorum}
	op.Tally.ResetTo(g.quorum)
	fails := func(node int, why error) {
		op.Tally.Record(node, quorum.Failed)
		op.Failures = append(op.Failures, engine.Failure{Node: node, Err: why})
	}
	lock := g.engine.DriverLock()
	lock.Lock()
	soonest = time.Hour
	for i := range g.fleet.Len() {
		n := g.fleet.Node(i)
		switch {
		case !n.Up:
			fails(i, n.Err)
		case n.Guarded > 0:
			soonest = min(soonest, n.Guarded)
			fails(i, conn.ErrQuarantined)
		default:
			if why := g.fence.VoteOf(i); why != nil {
				fails(i, why)
			}
		}
	}
	ready := op.Tally.Verdict() == quorum.Pending
	if !ready {
		if g.readiness.changed == nil {
			g.readiness.changed = make(chan struct{})
		}
		changed = g.readiness.changed
	}
	lock.Unlock()
	if engine.IsClosed(g.ending) {
		return nil, 0, engine.ErrClosed
	}
	if ready {
		return nil, 0, nil
	}
	return changed, soonest, g.cfg.QuorumError(g, &op)
}

// InitFencing gives nodes a vote that the others cannot bring back.
func (g *Group) InitFencing(ctx context.Context, atLeast uint64) error {
	if g.fence == nil {
		return fmt.Errorf("%w: InitFencing needs Config.Fenced", engine.ErrConfig)
	}
	return g.fence.InitFencing(orBackground(ctx), atLeast)
}

// voting is called when a node has got its fenced vote back.
func (g *Group) voting() {
	g.engine.DriverLock().Lock()
	defer g.engine.DriverLock().Unlock()
	g.readiness.nodeUp()
}
