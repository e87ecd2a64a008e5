package group

import (
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/waiting"
)

// Stats is what the root package's Stats has, but for the nodes.
type Stats struct {
	engine.Stats
	Waits            waiting.Waits
	Held, KeptAlive  int
	InLine           int
	Lost, HandedOver uint64
}

// Add adds the counts of another group.
func (s *Stats) Add(of Stats) {
	s.Stats.Add(of.Stats)
	s.Waits.Add(of.Waits)
	s.Held += of.Held
	s.KeptAlive += of.KeptAlive
	s.InLine += of.InLine
	s.Lost += of.Lost
	s.HandedOver += of.HandedOver
}

// Node is the state of a node, with its votes and the lists that it is in.
type Node struct {
	conn.Node
	Votes engine.Votes
	Lists Lists
}

// node returns the state of a node, with its number. The driver lock is held.
func (g *Group) node(i int) Node {
	n := Node{g.fleet.Node(i), g.engine.Votes(i), g.members.in(i)}
	n.Index = g.Number(i)
	return n
}

// Stats returns what was counted, and shows each node. All of it is of one moment.
func (g *Group) Stats(show func(Node)) (s Stats) {
	s.KeptAlive, s.Lost = g.keeper.Count()
	s.InLine, s.HandedOver = g.lines.Count()
	s.Waits = g.lines.Waits()
	g.engine.DriverLock().Lock()
	defer g.engine.DriverLock().Unlock()
	for i := range g.fleet.Len() {
		show(g.node(i))
	}
	s.Stats = g.engine.Stats()
	// A release whose caller has gone is sent.
	given, r := s.Acquire.Won+uint64(g.attached.Load()), s.Release
	s.Held = max(0, int(given-r.Won-r.Denied-r.Cancelled))
	return s
}
