package group

import (
	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/resp"
)

// observer is all calls upwards under the driver lock: the fleet's about nodes, and the
// engine's about answers. None blocks, and none calls user code.
type observer interface {
	nodeUp(node int)
	nodeDown(node int)
	pushed(node int, v *resp.Value)
	released(key []byte, nodes uint64)
	noVote(node int, a fencing.Answer)
}

var _ observer = (*Group)(nil)

// nodeUp is called for a node that came up. The driver lock is held, so the log
// and the hooks are called later.
func (g *Group) nodeUp(i int) {
	if g.fence != nil {
		n := g.fleet.Node(i)
		g.fence.Up(i, n.Connection, n.RunID)
		g.fleet.SetForm(i, conn.Form(command.Form(n.Form).ForNode(i)))
	}
	g.engine.NodeUp(i) // sends the hinted releases before anything else
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

// nodeDown is called for a node whose connection has ended, or whose first dial has
// failed. The driver lock is held.
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

// pushed is called for what a node has sent without being asked.
func (g *Group) pushed(node int, v *resp.Value) { g.lines.Pushed(node, v) }

// released is called when this process has deleted a key on nodes, a bit each.
func (g *Group) released(key []byte, nodes uint64) { g.lines.Released(key, nodes) }

// noVote is called for a node that has answered that it has no vote in fenced acquires.
func (g *Group) noVote(node int, a fencing.Answer) { g.fence.NoVote(node, a) }
