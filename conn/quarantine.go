package conn

import "time"

// The restart guard is the "delayed restarts" of the algorithm's text: a master
// that was restarted, and may have forgotten its keys, takes no part until every
// lock that was held when it crashed has expired. The text leaves that to who
// operates the servers; here the client does it, for itself. A process start is
// known by its run_id, which cannot change under a connection, so once for each
// connection is often enough to ask. The time is the client's monotonic clock's.

// quarantine is what is known of a node's restarts.
type quarantine struct {
	met   bool
	runID string        // of the server last met
	until time.Duration // it has no vote before
}

// checkRestart notes who answers behind a new connection, and withdraws the node's vote
// if that is a server which may have forgotten something.
//
// The wait counts from now, not from when the connection was lost: that may have
// been the network, long before the restart.
func (f *Fleet) checkRestart(n *node, id identity) {
	g := &n.quarantine
	wait := f.longest
	switch {
	case f.cfg.Quarantine > 0 && !g.met:
		// Servers subtract one whole second from another: that can be too much
		// by all but a second.
		wait = f.cfg.Quarantine - max(0, id.uptime-time.Second)
	case g.met && g.runID == id.runID:
		wait = 0
	case f.cfg.Quarantine > 0:
		wait = f.cfg.Quarantine
	case !g.met:
		wait = 0
	}
	g.met, g.runID = true, id.runID
	if wait > 0 && !n.persistent && !f.cfg.TrustRestarts {
		g.until = f.cfg.Clock.Now() + wait
		f.quarantined |= 1 << n.index
	}
}

// NoteTTL says that a key which was sent may live for d from now on. The longest
// one is what a node waits for after a restart.
func (f *Fleet) NoteTTL(d time.Duration) { f.longest = max(f.longest, d) }

// Quarantined is the nodes that have no vote now, a bit each. They are sent
// everything all the same, so that they know what is held when their vote counts
// again.
func (f *Fleet) Quarantined() uint64 {
	if f.quarantined == 0 {
		return 0
	}
	now := f.cfg.Clock.Now()
	for i, n := range f.nodes {
		if now >= n.quarantine.until {
			f.quarantined &^= 1 << i
		}
	}
	return f.quarantined
}

// quarantinedFor is how long a node has no vote yet.
func (f *Fleet) quarantinedFor(n *node) time.Duration {
	return max(0, n.quarantine.until-f.cfg.Clock.Now())
}
