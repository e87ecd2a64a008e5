// Package group implements the root package's calls for one quorum of nodes: it has
// the connections, the engine, and the locks that were acquired. The root package
// documents what the calls promise.
//
//	New ─> Group.Acquire ─┬─> engine ─> conn, quorum
//	            │         └─> token, clock
//	            └─> Handle.Extend, Handle.Release ─> lease, engine
package group

import (
	"fmt"
	"sync"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/holding"
)

// Group is the nodes of one quorum and everything that goes to them. It is safe
// for concurrent use.
type Group struct {
	cfg    Config // checked, with its defaults; without Nodes and Conn
	clock  *clock.System
	engine *engine.Engine
	fleet  *conn.Fleet
	keeper *holding.Keeper
	house  *housekeeper
	lines  lines
	fence  fence
	waits  waits
	closed sync.Once
	ending chan struct{} // closed when Close begins

	readiness readiness
}

// New checks cfg, connects to the nodes, and waits until each of them has
// answered or failed a first time.
func New(cfg Config) (*Group, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, wrongConfig(err)
	}
	g := &Group{clock: clock.New(), ending: make(chan struct{})}
	cfg.Engine.Clock = g.clock
	cfg.Engine.OnVote, cfg.Engine.OnPanic = g.onVote(cfg.OnVote), g.onPanic
	cfg.Engine.OnRelease = g.lines.released
	cfg.Conn.Clock = g.clock
	cfg.Conn.Logger = cfg.Logger
	cfg.Conn.Hidden = sentinels
	cfg.Conn.Probes = func() conn.Prober { return command.NewProbes(cfg.Scripted, g.fence.encode) }
	cfg.Conn.OnUp, cfg.Conn.OnDown, cfg.Conn.OnPush = g.nodeUp, g.nodeDown, g.lines.pushed
	g.fence.init(g, &cfg)
	g.cfg = cfg
	g.lines.init(g)                              // before cfg.Conn goes
	g.cfg.Nodes, g.cfg.Conn = nil, conn.Config{} // they hold passwords, and a Client can be printed
	g.engine = engine.New(cfg.Engine)
	g.house = newHousekeeper(g.clock)
	g.keeper = holding.NewKeeper(holding.Config{
		Engine: g.engine, Clock: g.clock, Tail: cfg.Holder, MaxHold: cfg.MaxHold,
		Ring: g.house.ring, Gone: g.lines.freed, Explain: g.shown, OnAttempt: cfg.OnAttempt, OnLockLost: cfg.OnLockLost,
	})
	g.house.tasks = append(g.house.tasks, g.keeper.Turn)
	lock := g.engine.DriverLock()
	lock.Lock() // a quick dialer calls nodeUp, which needs g.fleet
	g.fleet, err = conn.New(cfg.Conn, lock)
	lock.Unlock()
	if err != nil {
		return nil, fmt.Errorf("redlock: %w", err)
	}
	g.engine.Start(g.fleet)
	g.fence.start()
	g.fleet.AwaitFirstDials()
	if err := g.inspect(); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

// inspect looks at the nodes after their first dial. A node that must not be used
// for locks is an error, and so are nodes all of which refuse us for good, and one that
// cannot take part in fencing. A node that was never up is reported as down: the fleet
// reports the end of a connection only.
func (g *Group) inspect() error {
	g.engine.DriverLock().Lock()
	defer g.engine.DriverLock().Unlock()
	nodes := make([]conn.Node, g.fleet.Len())
	for i := range nodes {
		if nodes[i] = g.fleet.Node(i); nodes[i].Connects == 0 {
			g.nodeDown(i)
		}
	}
	return misconfigured(nodes, g.fence.on)
}

// Stats returns what was counted, and shows each node with its votes. All of it
// is of one moment.
func (g *Group) Stats(show func(n conn.Node, v engine.Votes)) engine.Stats {
	g.engine.DriverLock().Lock()
	defer g.engine.DriverLock().Unlock()
	for i := range g.fleet.Len() {
		show(g.fleet.Node(i), g.engine.Votes(i))
	}
	return g.engine.Stats()
}

// Kept is how many locks are kept alive, and how many were lost while they were.
func (g *Group) Kept() (kept int, lost uint64) { return g.keeper.Count() }

// Len is the number of nodes.
func (g *Group) Len() int { return g.fleet.Len() }

// Addr names a node, without credentials.
func (g *Group) Addr(node int) string { return g.fleet.Addr(node) }

// Close refuses new operations, waits up to CloseTimeout for those under way, and
// frees everything.
func (g *Group) Close() {
	g.closed.Do(func() {
		close(g.ending)
		g.fence.close()
		g.lines.close()
		g.keeper.Close()
		g.house.close()
		g.engine.Close(g.cfg.CloseTimeout)
	})
}
