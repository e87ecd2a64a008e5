package group

import (
	"errors"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/quarantine"
	"github.com/redlock-go/redlock/quorum"
)

// voters is a fleet as its engine has it: its nodes have no vote while they may have forgotten locks. It keeps what their
// servers have said, and when. Package quarantine decides what follows. The driver lock protects it.
type voters struct {
	*conn.Fleet
	clock    clock.Clock
	trusts   bool          // no node is in quarantine
	longest  time.Duration // how long a lock of any client may live, drift included; 0: not known
	used     time.Duration // one of this client; see NoteTTL
	memories []quarantine.Memory
	servers  []string // as Stats shows them, which allocates nothing

	quarantined quorum.Set // without a vote, when it was asked last
	forgetful   quorum.Set // have forgotten locks once: without a vote for longer, where a lock lives for longer
}

// init takes the settings of a group, before its fleet dials.
func (v *voters) init(cfg *Config, nodes int) {
	v.clock, v.trusts = cfg.Clock, cfg.TrustRestarts
	v.memories, v.servers = make([]quarantine.Memory, nodes), make([]string, nodes)
	if cfg.longest > 0 {
		v.longest = cfg.longest + quorum.Drift(cfg.longest)
	}
}

// meets compares the server on a node's new connection with that on the last, and withdraws the node's vote if it may
// have forgotten locks. The wait counts from now, not from the end of the last connection: this may have been the
// network, long before.
func (v *voters) meets(node int, s *conn.Server) {
	v.servers[node] = s.String()
	m := &v.memories[node]
	said := quarantine.Server{Run: s.RunID, History: s.History, Before: s.Before, Uptime: s.Uptime, Keeps: s.Keeps}
	m.Meets(said, quarantine.Bounds{All: v.longest, Used: v.used}, v.clock.Now())
	if m.Cause != quarantine.None && !v.trusts {
		v.quarantined.Add(node)
		v.forgetful.Add(node)
	}
}

// failed notes why a node is down.
func (v *voters) failed(node int, err error) {
	if errors.Is(err, conn.ErrNotMaster) {
		v.memories[node].SawReplica()
	}
}

// left is how long a node has no vote yet.
func (v *voters) left(node int) time.Duration {
	due := v.memories[node].Due(0)
	if due == 0 || v.trusts { // the clock is not read
		return 0
	}
	return max(0, due.Sub(v.clock.Now()))
}

// NoteTTL implements engine.Fleet.
func (v *voters) NoteTTL(d time.Duration) { v.used = max(v.used, d) }

// Quarantined implements engine.Fleet.
func (v *voters) Quarantined() quorum.Set {
	if v.quarantined == 0 {
		return 0
	}
	now := v.clock.Now()
	for node := range v.quarantined.All() {
		if now >= v.memories[node].Due(0) {
			v.quarantined.Remove(node)
		}
	}
	return v.quarantined
}

// QuarantinedFor implements engine.Fleet.
func (v *voters) QuarantinedFor(life time.Duration) (all quorum.Set) {
	if v.forgetful == 0 {
		return 0
	}
	now := v.clock.Now()
	for node := range v.forgetful.All() {
		if now < v.memories[node].Due(life) {
			all.Add(node)
		}
	}
	return all
}

// accept refuses a server that does not show what the group has to know of it, or that is a node of another group.
func (g *Group) accept(node int, s conn.Server) error {
	switch {
	case g.Config.Fenced && s.IsBefore(5): // a script may not write there once it has read the time
		return fmt.Errorf("%w (%s)", conn.ErrTooOld, &s)
	case s.RunID != "":
		if other := g.Config.Servers.claim(s.RunID, g.Number(node), g.names[node]); other != "" {
			return fmt.Errorf("%w, %s", conn.ErrSameServer, other)
		}
	case g.Config.Fenced || g.fleet.longest > 0 && !s.Keeps && !g.fleet.trusts:
		if s.Err != nil {
			return fmt.Errorf("%w: %w", conn.ErrNoRunID, s.Err)
		}
		return conn.ErrNoRunID
	}
	return nil
}
