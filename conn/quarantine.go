package conn

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/quarantine"
	"github.com/redlock-go/redlock/quorum"
)

// The fleet keeps what its nodes have said, and when. Package quarantine decides what follows for their votes.

// says is what the server of a new connection says about its memory.
func (n *node) says(id *identity) quarantine.Server {
	return quarantine.Server{Run: id.runID, History: id.history, Before: id.before, Uptime: id.uptime, Keeps: n.persistent && id.volatile == ""}
}

func (f *Fleet) bounds() quarantine.Bounds {
	return quarantine.Bounds{All: f.cfg.Quarantine, Used: f.longest}
}

// checkMemory compares the server on a new connection with that on the last, and withdraws the node's vote if it may
// have forgotten locks.
//
// The wait counts from now, not from the loss of the connection: this may have been the network, long before.
func (f *Fleet) checkMemory(n *node, id *identity) {
	n.memory.Meets(n.says(id), f.bounds(), f.cfg.Clock.Now())
	if n.memory.Cause != quarantine.None && !f.cfg.TrustRestarts {
		f.quarantined.Add(n.index)
		f.forgetful.Add(n.index)
	}
}

// Quarantined returns the nodes without a vote now. They are sent all commands, so they have the keys of all locks
// when their vote counts again.
func (f *Fleet) Quarantined() quorum.Set {
	if f.quarantined == 0 {
		return 0
	}
	now := f.cfg.Clock.Now()
	for i, n := range f.nodes {
		if now >= n.memory.Due(0) {
			f.quarantined.Remove(i)
		}
	}
	return f.quarantined
}

// QuarantinedFor returns the nodes without a vote now in a call whose lock may live for so long, drift included. They
// include those of [Fleet.Quarantined].
func (f *Fleet) QuarantinedFor(life time.Duration) (all quorum.Set) {
	if f.forgetful == 0 {
		return 0
	}
	now := f.cfg.Clock.Now()
	for i := range f.forgetful.All() {
		if now < f.nodes[i].memory.Due(life) {
			all.Add(i)
		}
	}
	return all
}

// due is from when on the node's vote counts, or 0 if it always has.
func (n *node) due() clock.Instant {
	if n.fleet.cfg.TrustRestarts {
		return 0
	}
	return n.memory.Due(0)
}
