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

// wake wakes the callers waiting for a quorum of nodes: a node is up, or has its vote back. The driver lock is held.
func (g *Group) wake() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// leastWait is how long Ready waits at least before it looks at a quarantine again.
const leastWait = 10 * time.Millisecond

// mostWait is how long it waits at most before it says again that it wants a quorum.
const mostWait = time.Second

// Ready waits until a quorum of nodes, or with every all of them, is up and may vote, until ctx ends, or until the
// client is closed. It is woken when a node comes up, and at the end of a quarantine. It reports whether it has waited.
func (g *Group) Ready(ctx context.Context, every bool) (waited bool, err error) {
	for ; ; waited = true {
		changed, soonest, why := g.readinessNow(every)
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
		case <-g.Config.Ending:
		}
		timer.Stop()
	}
}

var errRests = fmt.Errorf("%w: its idle connection was closed, and is being replaced", conn.ErrDown)

// readinessNow returns why there is no quorum, an ErrNoQuorum with the nodes without a vote, and when there may be one: once
// changed is closed, or after soonest.
func (g *Group) readinessNow(every bool) (changed <-chan struct{}, soonest time.Duration, why error) {
	op := engine.Op{Err: engine.ErrNoQuorum}
	op.Tally.Reset(g.Config.members.Quorum)
	fails := func(node int, why error) {
		op.Tally.Record(node, quorum.Failed)
		op.Failures = append(op.Failures, engine.Failure{Node: node, Err: why})
	}
	lock := g.Engine.DriverLock()
	lock.Lock()
	soonest = mostWait
	for i := range g.Len() {
		node := g.fleet.Node(i)
		left, why := g.vote(i, &node)
		if every && why == nil && node.Rests { // perhaps its server has restarted: the next connection shows it
			why = errRests
		}
		if why == nil {
			continue
		}
		if g.fleet.left(i) > 0 {
			soonest = min(soonest, left)
		}
		fails(i, why)
	}
	ready := op.Tally.Verdict() == quorum.Pending && !(every && len(op.Failures) > 0)
	if !ready {
		g.fleet.Want()
		if g.changed == nil {
			g.changed = make(chan struct{})
		}
		changed = g.changed
	}
	lock.Unlock()
	if engine.IsClosed(g.Config.Ending) {
		return nil, 0, engine.ErrClosed
	}
	if ready {
		return nil, 0, nil
	}
	return changed, soonest, g.Explain(&op, op.Err)
}
