package group

import (
	"log/slog"
	"slices"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/metrics"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/rules/quarantine"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// Await waits until a quorum of nodes is up, and the others have had some time, or each node has answered or failed a
// first time. An error is why they must not be used.
func (g *Group) Await() error {
	g.fleet.AwaitFirst(nil, g.Config.members.Quorum.IsQuorum)
	g.Engine.DriverLock().Lock()
	defer g.Engine.DriverLock().Unlock()
	all := make([]conn.Node, g.Len())
	for i := range all {
		all[i] = g.fleet.Node(i)
	}
	return misconfigured(all, g.Config.Fenced, g.Config.members.Next != nil)
}

// AwaitAll waits until each node has answered or failed a first time, or done is closed.
func (g *Group) AwaitAll(done <-chan struct{}) { g.fleet.AwaitFirst(done, nil) }

// Len is the number of nodes.
func (g *Group) Len() int { return len(g.names) }

// Addr names a node, without credentials.
func (g *Group) Addr(node int) string { return g.names[node] }

// Number is the number of a node among those of all groups of the client.
func (g *Group) Number(node int) int { return g.Config.First + node }

// IsUp reports whether a node has a connection.
func (g *Group) IsUp(node int) bool {
	g.Engine.DriverLock().Lock()
	defer g.Engine.DriverLock().Unlock()
	return !g.fleet.Away().Has(node)
}

// Node is the state of a node at one moment. The driver lock is held.
func (g *Group) Node(i int) metrics.Node {
	c, votes, in := g.fleet.Node(i), g.Engine.Votes(i), g.Config.members.in(i)
	left, why := g.vote(i, &c)
	return metrics.Node{
		Index: g.Number(i), Group: g.Config.Number, Addr: c.Addr, InNodes: in.Nodes, InNextNodes: in.NextNodes, Up: c.Up, Err: c.Err,
		Server: g.fleet.servers[i], Dialect: command.Form(c.Form).String(), Volatile: c.Volatile, Connects: c.Connects,
		RoundTrips: c.RoundTrips, RoundTrip: c.RoundTrip, RoundTripMax: c.RoundTripMax, InFlight: c.InFlight,
		Granted: votes[quorum.Granted], Denied: votes[quorum.Denied], Failed: votes[quorum.Failed],
		Serves: g.Fence.Serves(i), NoVote: why, NoVoteFor: left,
	}
}

// vote is why a node has no vote in locks, and for how long still, if known.
func (g *Group) vote(i int, at *conn.Node) (left time.Duration, why error) {
	left, why = g.Fence.Vote(i)
	forgot := g.fleet.left(i)
	switch left = max(forgot, left); {
	case !at.Up:
		return left, at.Err
	case forgot > 0:
		return left, conn.ErrQuarantined
	}
	return left, why
}

// observer is a Group as its engine's Observer: it passes on what a driver finds out.
type observer Group

// NodeChanged implements engine.Observer.
func (o *observer) NodeChanged(node int, c engine.Change, a fencing.Answer) {
	switch g := (*Group)(o); c {
	case engine.Up:
		g.lines.Up(node, g.up(node))
	case engine.Down:
		g.lines.Down(node)
		g.down(node)
	case engine.NoVote:
		g.Fence.NoVote(node, a)
	}
}

// KeyChanged implements engine.Observer.
func (o *observer) KeyChanged(nodes quorum.Set, key []byte, own bool) {
	o.lines.KeyChanged(nodes, key, own)
}

// up notes that a node came up, and reports whether it can push. The driver lock is held.
func (g *Group) up(i int) (pushes bool) {
	at := g.fleet.Node(i)
	g.fleet.meets(i, &at.Server)
	if g.Config.Fenced {
		g.Fence.Up(i, at.Connection, at.Server.Life(), at.Server.Keeps && at.Server.Before == "")
		g.fleet.SetForm(i, conn.Form(command.Form(at.Form).ForNode(i)))
	}
	s := g.Node(i)
	if !at.Resumed {
		g.say(i, isUp, &s)
		g.hook(g.Config.OnNodeUp, s)
		g.doubt(i, &at.Server, &s)
	}
	g.wake()
	g.review()
	return at.Pushes
}

// doubt reports what is doubtful about the memory of a node that came up.
func (g *Group) doubt(i int, of *conn.Server, s *metrics.Node) {
	if g.fleet.trusts {
		return
	}
	if of.RunID == "" && !of.Keeps {
		g.log(slog.LevelWarn, "redlock: node does not show its run_id (INFO server): it has no quarantine after a restart", "node", s.Addr, "error", of.Err)
	}
	if m := g.fleet.memories[i]; m.Cause != quarantine.None {
		g.quarantines[i].Store(&withdrawn{m, of.Uptime, g.Config.Clock.Now()})
	}
	if left := g.fleet.left(i); left > 0 {
		g.turnAt(g.Config.Clock.Now().Add(left))
		g.withheld(i, s)
	}
}

// withheld reports that a node has no vote for a time.
func (g *Group) withheld(i int, s *metrics.Node) {
	g.say(i, noVote, s)
	g.hook(g.Config.OnNodeQuarantined, *s)
}

// Forgot notes that a node has lost its fencing tokens. For a restarted node up has done so.
func (g *Group) Forgot(i int) {
	g.Engine.DriverLock().Lock()
	defer g.Engine.DriverLock().Unlock()
	if g.fleet.left(i) == 0 {
		s := g.Node(i)
		g.withheld(i, &s)
		g.review()
	}
}

// Voting notes that a node has its fenced vote back.
func (g *Group) Voting() {
	g.Engine.DriverLock().Lock()
	defer g.Engine.DriverLock().Unlock()
	g.wake()
	g.review()
}

// down notes that the connection of a node has ended, or that its first dial has failed. The driver lock is held.
func (g *Group) down(i int) {
	at := g.fleet.Node(i)
	g.Config.Servers.leave(g.Number(i))
	g.fleet.failed(i, at.Err)
	s := g.Node(i)
	if at.Rests {
		if w := &g.news[i]; !w.rested {
			w.rested = true
			g.log(slog.LevelInfo, "redlock: the server closes idle connections (its setting timeout, or a proxy); they are replaced at once, and this is logged once", "node", s.Addr)
		}
		return
	}
	g.say(i, isDown, &s)
	g.hook(g.Config.OnNodeDown, s)
	g.review()
}

// stays notes that a dial of a node down has failed, perhaps for another reason. The driver lock is held.
func (g *Group) stays(i int, isNew bool) {
	s := g.Node(i)
	g.fleet.failed(i, s.Err)
	if isNew {
		g.say(i, isDown, &s)
	}
}

// hook has a hook called with the news of a node, by the goroutine of callbacks.
func (g *Group) hook(f func(metrics.Node), s metrics.Node) {
	if f != nil {
		g.Engine.Notify(engine.News(func() { f(s) }))
	}
}

// voters returns the nodes with a vote now. The driver lock is held.
func (g *Group) voters() (votes quorum.Set) {
	for i := range g.Len() {
		at := g.fleet.Node(i)
		if _, why := g.vote(i, &at); why == nil {
			votes.Add(i)
		}
	}
	return votes
}

// review looks again at which nodes can vote, after a change. The driver lock is held.
func (g *Group) review() {
	votes := g.voters()
	for i := range votes.All() {
		if g.news[i].is == noVote {
			s := g.Node(i)
			g.say(i, isUp, &s)
		}
	}
	had := g.voting
	g.voting = g.Config.members.Quorum.IsQuorum(votes)
	if had || !g.voting {
		return
	}
	g.wake()
	g.lines.Regained()
	if g.unready {
		g.unready = false
		g.log(slog.LevelWarn, "redlock: locks can be acquired now")
	}
}

// AddStats adds the counts of the engine, and the nodes as shown by node. All of it is of one moment.
func AddStats[N any](g *Group, s *metrics.Stats[N], node func(metrics.Node) N) {
	g.Engine.DriverLock().Lock()
	defer g.Engine.DriverLock().Unlock()
	ready := g.Config.members.Quorum.IsQuorum(g.voters())
	s.Nodes = slices.Grow(s.Nodes, g.Len())
	for i := range g.Len() {
		n := g.Node(i)
		n.GroupReady = ready
		s.Nodes = append(s.Nodes, node(n))
	}
	engine.AddStats(g.Engine, s)
}
