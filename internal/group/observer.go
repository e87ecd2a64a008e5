package group

import (
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fencing"
)

// observer is a Group as its engine's Observer: it passes on what a driver comes to know.
type observer Group

// NodeChanged implements engine.Observer.
func (o *observer) NodeChanged(node int, c engine.Change, a fencing.Answer) {
	switch g := (*Group)(o); c {
	case engine.Up:
		g.nodeUp(node)
	case engine.Down:
		g.nodeDown(node)
	case engine.NoVote:
		g.fence.NoVote(node, a)
	}
}

// KeyChanged implements engine.Observer.
func (o *observer) KeyChanged(nodes uint64, key []byte, own bool) {
	o.lines.KeyChanged(nodes, key, own)
}

// nodeUp notes that a node came up. The driver lock is held, so the log and the hooks are called
// later.
func (g *Group) nodeUp(i int) {
	if g.fence != nil {
		n := g.fleet.Node(i)
		g.fence.Up(i, n.Connection, n.RunID)
		g.fleet.SetForm(i, conn.Form(command.Form(n.Form).ForNode(i)))
	}
	g.readiness.nodeUp()
	n := g.node(i)
	g.lines.Up(i, n.Pushes)
	g.reportNode(func() {
		g.cfg.Logger.Info("redlock: node is up", "node", n.Addr, "server", n.Server, "releases by", command.Form(n.Form))
	}, g.cfg.OnNodeUp, n)
	if n.Guarded > 0 {
		g.reportNode(func() {
			g.cfg.Logger.Warn("redlock: node may have forgotten locks, and has no vote yet", "node", n.Addr, "for", n.Guarded)
		}, g.cfg.OnNodeGuarded, n)
	}
}

// nodeDown notes that the connection of a node has ended, or that its first dial has failed. The
// driver lock is held.
func (g *Group) nodeDown(i int) {
	g.lines.Down(i)
	n := g.node(i)
	g.reportNode(func() {
		g.cfg.Logger.Warn("redlock: node is down", "node", n.Addr, "error", n.Err)
	}, g.cfg.OnNodeDown, n)
}

// reportNode has the log and a hook called with the news of a node. They are two
// calls: a panic in one does not keep the other from happening.
func (g *Group) reportNode(log func(), hook func(Node), n Node) {
	if g.cfg.Logger != nil {
		g.engine.Notify(log)
	}
	if hook != nil {
		g.engine.Notify(func() { hook(n) })
	}
}
