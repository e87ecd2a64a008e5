package conn

import "time"

// The restart guard is the "delayed restarts" of the algorithm's text: a master
// that was restarted, and may have forgotten its keys, takes no part until every
// lock that was held when it crashed has expired. The text leaves that to who
// operates the servers; here the client does it, for itself. A process start is
// known by its run_id, which cannot change under a connection, so once for each
// connection is often enough to ask. The time is the client's monotonic clock's.

// second is by how much a server's uptime may be too long: it takes the second
// of its start from the present one.
const second = time.Second

// guard is what is known of a node's restarts.
type guard struct {
	met   bool
	runID string        // of the server last met
	until time.Duration // it has no vote before
}

// meet notes who answers behind a new connection, and withdraws the node's vote
// if that is a server which may have forgotten something.
//
// The wait counts from now, not from when the connection was lost: that may have
// been the network, long before the restart.
func (f *Fleet) meet(n *node, id identity) {
	g := &n.guard
	wait := f.longest
	switch {
	case f.cfg.Probation > 0 && !g.met:
		wait = f.cfg.Probation - max(0, id.uptime-second)
	case g.met && g.runID == id.runID:
		wait = 0
	case f.cfg.Probation > 0:
		wait = f.cfg.Probation
	case !g.met:
		wait = 0
	}
	g.met, g.runID = true, id.runID
	if wait > 0 && !n.persistent && !f.cfg.TrustRestarts {
		g.until = f.cfg.Clock.Now() + wait
		f.guarded |= 1 << n.index
	}
}

// Outlive says that a key which was sent may live for d from now on. The longest
// one is what a node waits for after a restart.
func (f *Fleet) Outlive(d time.Duration) { f.longest = max(f.longest, d) }

// Guarded is the nodes that have no vote now, a bit each. They are sent
// everything all the same, so that they know what is held when their vote counts
// again.
func (f *Fleet) Guarded() uint64 {
	if f.guarded == 0 {
		return 0
	}
	now := f.cfg.Clock.Now()
	for i, n := range f.nodes {
		if now >= n.guard.until {
			f.guarded &^= 1 << i
		}
	}
	return f.guarded
}

// guardedFor is how long a node has no vote yet.
func (f *Fleet) guardedFor(n *node) time.Duration {
	return max(0, n.guard.until-f.cfg.Clock.Now())
}
