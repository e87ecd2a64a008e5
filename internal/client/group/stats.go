package group

import (
	"github.com/redlock-go/redlock/internal/base/metrics"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/waiting"
	"github.com/redlock-go/redlock/quorum"
)

// AddStats adds the counts of g, and its nodes as shown by node. All of it is of one moment.
func AddStats[N any](g *Group, s *metrics.Stats[N], node func(metrics.Node) N) {
	held, kept, lost := g.keeper.Count()
	s.Held += held
	s.KeptAlive += kept
	s.Lost += lost
	waiting.AddStats(g.lines, s)
	g.engine.DriverLock().Lock()
	defer g.engine.DriverLock().Unlock()
	var votes quorum.Tally
	votes.Reset(g.cfg.members.Quorum)
	for i := range g.Len() {
		if g.Node(i).NoVote != nil {
			votes.Record(i, quorum.Failed)
		}
	}
	for i := range g.Len() {
		n := g.Node(i)
		n.GroupReady = votes.Verdict() == quorum.Pending
		s.Nodes = append(s.Nodes, node(n))
	}
	engine.AddStats(g.engine, s)
}
