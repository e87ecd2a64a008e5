package group

import (
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/metrics"
	"github.com/redlock-go/redlock/internal/nodes"
	"github.com/redlock-go/redlock/internal/waiting"
)

// Stats is what the root package's Stats has, but for the nodes.
type Stats struct {
	engine.Stats
	Waits            waiting.Waits
	WaitTimes        metrics.Histogram // of Waits
	Held, KeptAlive  int
	InLine           int
	Lost, HandedOver uint64
}

// Add adds the counts of another group.
func (s *Stats) Add(of Stats) {
	s.Stats.Add(of.Stats)
	s.Waits.Add(of.Waits)
	s.WaitTimes.Merge(of.WaitTimes)
	s.Held += of.Held
	s.KeptAlive += of.KeptAlive
	s.InLine += of.InLine
	s.Lost += of.Lost
	s.HandedOver += of.HandedOver
}

// Stats returns what was counted, and shows each node. All of it is of one moment.
func (g *Group) Stats(show func(nodes.Node)) (s Stats) {
	s.Held, s.KeptAlive, s.Lost = g.keeper.Count()
	s.InLine, s.HandedOver = g.lines.Count()
	s.Waits, s.WaitTimes = g.lines.Waits(), g.lines.Times()
	g.engine.DriverLock().Lock()
	defer g.engine.DriverLock().Unlock()
	g.Show(show)
	s.Stats = g.engine.Stats()
	return s
}
