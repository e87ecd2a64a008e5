package group

import (
	"context"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/quorum"
)

// readiness wakes the callers waiting for a quorum of nodes. The driver lock protects it.
type readiness struct {
	changed chan struct{} // closed when a node comes up; nil while no goroutine waits
}

// wake wakes all of them: a node is up, or has its fenced vote.
func (r *readiness) wake() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// leastWait is how long Ready waits at least before it looks at a quarantine again.
const leastWait = 10 * time.Millisecond

// mostWait is how long it waits at most before it says again that it wants a quorum.
const mostWait = time.Second

// Ready waits until a quorum of nodes, or with every all of them, is up and may vote, until ctx ends, or until the
// client is closed. It is woken when a node comes up, and at the end of a quarantine. It reports whether it has waited.
func (n *Nodes) Ready(ctx context.Context, every bool) (waited bool, err error) {
	for ; ; waited = true {
		changed, soonest, why := n.readinessNow(every)
		if why == nil || why == engine.ErrClosed {
			return waited, why
		}
		if ctx.Err() != nil {
			return waited, texts.NotReady(ctx, why)
		}
		timer := time.NewTimer(max(leastWait, soonest))
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		case <-n.cfg.Ending:
		}
		timer.Stop()
	}
}

var errRests = fmt.Errorf("%w: its idle connection was closed, and is being replaced", conn.ErrDown)

// readinessNow returns why there is no quorum, an ErrNoQuorum with the nodes without a vote, and when there may be one: once
// changed is closed, or after soonest.
func (n *Nodes) readinessNow(every bool) (changed <-chan struct{}, soonest time.Duration, why error) {
	op := engine.Op{Err: engine.ErrNoQuorum}
	op.Tally.Reset(n.cfg.members.Quorum)
	fails := func(node int, why error) {
		op.Tally.Record(node, quorum.Failed)
		op.Failures = append(op.Failures, engine.Failure{Node: node, Err: why})
	}
	lock := n.engine.DriverLock()
	lock.Lock()
	soonest = mostWait
	for i := range n.Len() {
		node := n.fleet.Node(i)
		left, why := n.vote(i, &node)
		if every && why == nil && node.Rests { // perhaps its server has restarted: the next connection shows it
			why = errRests
		}
		if why == nil {
			continue
		}
		if node.Quarantined > 0 {
			soonest = min(soonest, left)
		}
		fails(i, why)
	}
	ready := op.Tally.Verdict() == quorum.Pending && !(every && len(op.Failures) > 0)
	if !ready {
		n.fleet.Want()
		if n.readiness.changed == nil {
			n.readiness.changed = make(chan struct{})
		}
		changed = n.readiness.changed
	}
	lock.Unlock()
	if engine.IsClosed(n.cfg.Ending) {
		return nil, 0, engine.ErrClosed
	}
	if ready {
		return nil, 0, nil
	}
	return changed, soonest, n.Explain(&op, op.Err)
}
