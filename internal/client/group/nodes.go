package group

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/base/metrics"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/fence"
	"github.com/redlock-go/redlock/internal/client/fleet"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// Nodes is the nodes of one quorum as their client sees them: each node's state, its vote, or the reason why it has
// none. The driver lock protects all that changes about a node. Hooks and the log are called later, by the goroutine of
// callbacks. It is safe for concurrent use.
type Nodes struct {
	cfg         *Config // the group's
	names       []string
	engine      *engine.Engine
	fence       *fence.Client // nil: acquires are not fenced
	fleet       *fleet.Fleet
	readiness   readiness
	quarantines []atomic.Pointer[quarantine] // the last of each node
	news        []news                       // of each node, for the log
	turn        atomic.Int64                 // a clock.Instant: when Turn has something to do
	voting      bool                         // a quorum has its vote
	unready     bool                         // the log says that no lock can be acquired
	warns       atomic.Bool                  // it may have to say so, once the nodes are heard
	regained    func()                       // called when a quorum has its vote again
}

// newNodes returns nodes, to be completed by connect.
func newNodes(cfg *Config, addresses []conn.Address) *Nodes {
	n := &Nodes{cfg: cfg, quarantines: make([]atomic.Pointer[quarantine], len(addresses)), news: make([]news, len(addresses))}
	n.turn.Store(int64(clock.Never))
	for _, a := range addresses {
		n.names = append(n.names, a.String())
	}
	return n
}

// connect begins to connect to the nodes, and starts the engine.
func (n *Nodes) connect(cfg fleet.Config, e *engine.Engine, f *fence.Client) (err error) {
	n.engine, n.fence = e, f
	cfg.Hidden, cfg.Fenced = sentinels, f != nil // or tokens back from an old file would count
	cfg.OnUp, cfg.OnDown, cfg.OnStays, cfg.OnPush = e.NodeUp, e.NodeDown, n.stays, e.Pushed
	lock := e.DriverLock()
	lock.Lock() // a quick dialer calls Up: it needs the fleet
	n.fleet, err = fleet.New(cfg, lock)
	lock.Unlock()
	if err == nil {
		e.Start(n.fleet)
	}
	return err
}

// Await waits until a quorum of nodes is up, and the others have had some time, or each node has answered or failed a
// first time. An error is why they must not be used.
func (n *Nodes) Await() error {
	n.fleet.AwaitFirst(nil, n.cfg.members.Quorum.IsQuorum)
	n.engine.DriverLock().Lock()
	defer n.engine.DriverLock().Unlock()
	all := make([]fleet.Node, n.Len())
	for i := range all {
		all[i] = n.fleet.Node(i)
	}
	return misconfigured(all, n.fence != nil, n.cfg.members.Next != nil)
}

// AwaitAll waits until each node has answered or failed a first time, or done is closed.
func (n *Nodes) AwaitAll(done <-chan struct{}) { n.fleet.AwaitFirst(done, nil) }

// Len is the number of nodes.
func (n *Nodes) Len() int { return len(n.names) }

// Addr names a node, without credentials.
func (n *Nodes) Addr(node int) string { return n.names[node] }

// Addrs is Addr for all nodes.
func (n *Nodes) Addrs() []string { return n.names }

// Number is the number of a node among those of all groups of the client.
func (n *Nodes) Number(node int) int { return n.cfg.First + node }

// Members is which nodes are in which list.
func (n *Nodes) Members() *Members { return &n.cfg.members }

// IsUp reports whether a node has a connection.
func (n *Nodes) IsUp(node int) bool {
	n.engine.DriverLock().Lock()
	defer n.engine.DriverLock().Unlock()
	return !n.fleet.Away().Has(node)
}

// Node is the state of a node at one moment. The driver lock is held.
func (n *Nodes) Node(i int) metrics.Node {
	c, votes, in := n.fleet.Node(i), n.engine.Votes(i), n.cfg.members.in(i)
	left, why := n.vote(i, &c)
	return metrics.Node{
		Index: n.Number(i), Group: n.cfg.Number, Addr: c.Addr, InNodes: in.Nodes, InNextNodes: in.NextNodes, Up: c.Up, Err: c.Err,
		Server: c.Server, Dialect: command.Form(c.Form).String(), Connects: c.Connects,
		RoundTrips: c.RoundTrips, RoundTrip: c.RoundTrip, RoundTripMax: c.RoundTripMax, InFlight: c.InFlight,
		Granted: votes[quorum.Granted], Denied: votes[quorum.Denied], Failed: votes[quorum.Failed],
		Serves: n.fence.Serves(i), NoVote: why, NoVoteFor: left,
	}
}

// vote is why a node has no vote in locks, and for how long still, if known.
func (n *Nodes) vote(i int, at *fleet.Node) (left time.Duration, why error) {
	left, why = n.fence.Vote(i)
	switch left = max(at.Quarantined, left); {
	case !at.Up:
		return left, at.Err
	case at.Quarantined > 0:
		return left, conn.ErrQuarantined
	}
	return left, why
}

// Up notes that a node came up, and reports whether it can push. The driver lock is held.
func (n *Nodes) Up(i int) (pushes bool) {
	at := n.fleet.Node(i)
	if n.fence != nil {
		n.fence.Up(i, at.Connection, at.RunID)
		n.fleet.SetForm(i, fleet.Form(command.Form(at.Form).ForNode(i)))
	}
	s := n.Node(i)
	if !at.Resumed {
		n.say(i, isUp, &s)
		n.hook(n.cfg.OnNodeUp, s)
	}
	if at.Quarantined > 0 && !at.Resumed {
		now := n.cfg.Clock.Now()
		n.quarantines[i].Store(&quarantine{at.Unmet, at.Uptime, now, now.Add(at.Quarantined)})
		n.turnAt(now.Add(at.Quarantined))
		n.withheld(i, &s)
	}
	n.readiness.wake()
	n.review()
	return at.Pushes
}

// withheld reports that a node has no vote for a time.
func (n *Nodes) withheld(i int, s *metrics.Node) {
	n.say(i, noVote, s)
	n.hook(n.cfg.OnNodeQuarantined, *s)
}

// Forgot notes that a node has lost its fencing tokens. For a restarted node Up has done so.
func (n *Nodes) Forgot(i int) {
	n.engine.DriverLock().Lock()
	defer n.engine.DriverLock().Unlock()
	if n.fleet.Node(i).Quarantined == 0 {
		s := n.Node(i)
		n.withheld(i, &s)
		n.review()
	}
}

// Voting notes that a node has its fenced vote back.
func (n *Nodes) Voting() {
	n.engine.DriverLock().Lock()
	defer n.engine.DriverLock().Unlock()
	n.readiness.wake()
	n.review()
}

// Down notes that the connection of a node has ended, or that its first dial has failed. The driver lock is held.
func (n *Nodes) Down(i int) {
	s := n.Node(i)
	if n.fleet.Node(i).Rests {
		if w := &n.news[i]; !w.rested {
			w.rested = true
			n.log(slog.LevelInfo, "redlock: the server closes idle connections (its setting timeout, or a proxy); they are replaced at once, and this is logged once", "node", s.Addr)
		}
		return
	}
	n.say(i, isDown, &s)
	n.hook(n.cfg.OnNodeDown, s)
	n.review()
}

// stays notes that a node still down fails for another reason. The driver lock is held.
func (n *Nodes) stays(i int) {
	s := n.Node(i)
	n.say(i, isDown, &s)
}

// hook has a hook called with the news of a node, by the goroutine of callbacks.
func (n *Nodes) hook(f func(metrics.Node), s metrics.Node) {
	if f != nil {
		n.engine.Notify(func() { f(s) })
	}
}

// voters is the nodes with a vote now. The driver lock is held.
func (n *Nodes) voters() (votes quorum.Set) {
	for i := range n.Len() {
		at := n.fleet.Node(i)
		if _, why := n.vote(i, &at); why == nil {
			votes.Add(i)
		}
	}
	return votes
}

// review looks again at which nodes can vote, after a change. The driver lock is held.
func (n *Nodes) review() {
	votes := n.voters()
	for i := range votes.All() {
		if n.news[i].is == noVote {
			s := n.Node(i)
			n.say(i, isUp, &s)
		}
	}
	had := n.voting
	n.voting = n.cfg.members.Quorum.IsQuorum(votes)
	if had || !n.voting {
		return
	}
	n.readiness.wake()
	n.regained()
	if n.unready {
		n.unready = false
		n.log(slog.LevelWarn, "redlock: locks can be acquired now")
	}
}
