package group

import (
	"github.com/redlock-go/redlock/internal/base/metrics"
	"github.com/redlock-go/redlock/internal/client/engine"
)

// AddStats adds the counts of the engine, and the nodes as shown by node. All of it is of one moment.
func AddStats[N any](g *Group, s *metrics.Stats[N], node func(metrics.Node) N) {
	g.engine.DriverLock().Lock()
	defer g.engine.DriverLock().Unlock()
	ready := g.cfg.members.Quorum.IsQuorum(g.voters())
	for i := range g.Len() {
		n := g.Node(i)
		n.GroupReady = ready
		s.Nodes = append(s.Nodes, node(n))
	}
	engine.AddStats(g.engine, s)
}
