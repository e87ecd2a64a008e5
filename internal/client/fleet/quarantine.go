package fleet

import (
	"time"

	"github.com/redlock-go/redlock/quorum"
)

// Quarantine is the "delayed restarts" of the algorithm's text: a restarted master, which may have forgotten its
// keys, takes no part until every lock held at its crash has expired. The text leaves this to the operators; here
// each client does it for itself. Each process start has a new run_id. It cannot change during a connection, so it is
// read once for each connection. The wait is measured on the client's monotonic clock.

// checkRestart compares the server on a new connection with that on the last, and withdraws the node's vote if it may
// have lost its keys.
//
// The wait counts from now, not from the loss of the connection: this may have been the network, long before the
// restart.
func (f *Fleet) checkRestart(n *node, id identity) {
	met, wait := n.history.Connects > 0, f.longest
	switch {
	case f.cfg.Quarantine > 0 && !met:
		// Servers subtract whole seconds, so the uptime may be too long by almost a second.
		wait = f.cfg.Quarantine - max(0, id.uptime-time.Second)
	case !met, n.id.runID == id.runID:
		wait = 0
	case f.cfg.Quarantine > 0:
		wait = f.cfg.Quarantine
	}
	if wait > 0 && !n.persistent && !f.cfg.TrustRestarts {
		n.until, n.unmet = f.cfg.Clock.Now().Add(wait), !met
		f.quarantined.Add(n.index)
	}
}

// NoteTTL notes that a sent key may live for d from now on. The longest one is the wait of a restarted node.
func (f *Fleet) NoteTTL(d time.Duration) { f.longest = max(f.longest, d) }

// Quarantined returns the nodes without a vote now. They are sent all commands, so they have the keys of all locks
// when their vote counts again.
func (f *Fleet) Quarantined() quorum.Set {
	if f.quarantined == 0 {
		return 0
	}
	now := f.cfg.Clock.Now()
	for i, n := range f.nodes {
		if now >= n.until {
			f.quarantined.Remove(i)
		}
	}
	return f.quarantined
}
