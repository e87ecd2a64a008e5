// Package group implements the root package's calls for one quorum of nodes: it has the
// connections, the engine, and the locks that were acquired. It puts the other rooms together,
// and has the configuration and the hooks. The root package documents what the calls promise.
//
// A client may have several groups (package router). None knows of another, but a lock of several
// keys may have some in each: its calls then go to the engines of several (calls.parts).
//
//	New ─> Group.Acquire ─┬─> engine ─> conn, quorum
//	            │         ├─> waiting, fence
//	            │         └─> token, clock
//	            ├─> Handle.Extend, Handle.Release ─> holding, engine
//	            └─> Group.Inspect, Group.Attach ─> inspection
package group

import (
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/fence"
	"github.com/redlock-go/redlock/internal/holding"
	"github.com/redlock-go/redlock/internal/texts"
	"github.com/redlock-go/redlock/internal/waiting"
)

// Group is the nodes of one quorum and everything that goes to them. It is safe
// for concurrent use.
type Group struct {
	cfg    Config // checked, with its defaults; without what has passwords
	clock  *clock.System
	ending <-chan struct{} // closed when the client begins to close
	engine *engine.Engine
	fleet  *conn.Fleet
	addrs  []string // of the nodes, without credentials
	members
	keeper *holding.Keeper
	lines  *waiting.Lines
	fence  *fence.Client // nil: acquires are not fenced
	// attached counts the handles of Attach, which no acquire has brought.
	attached atomic.Int64

	readiness readiness
}

// New checks cfg and begins to connect to the nodes. Await comes next, and Stop and End in the
// end, also after an error of Await.
func New(cfg Config) (*Group, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, texts.WrongConfig(wrong, err)
	}
	g := &Group{clock: cfg.Clock, addrs: names(&cfg), members: cfg.members, ending: cfg.Ending}
	cfg.Engine.Clock, cfg.Conn.Clock = g.clock, g.clock
	cfg.Engine.OnVote, cfg.Engine.OnPanic, cfg.Engine.Observer = g.onVote(cfg.OnVote), g.onPanic, (*observer)(g)
	cfg.Conn.Logger = cfg.Logger
	cfg.Conn.Hidden, cfg.Conn.Servers = sentinels, cfg.Servers
	g.cfg = cfg
	g.cfg.Nodes, g.cfg.NextNodes, g.cfg.Conn = nil, nil, conn.Config{} // they hold passwords, and a Client can be printed
	if cfg.Fenced {
		g.fence = g.newFence(&cfg)
		cfg.Engine.Fence = g.fence.Encode()
		cfg.Conn.Fenced = true // or tokens that come back from an old file would count
	}
	cfg.Conn.Probes = func() conn.Prober { return command.NewProbes(cfg.Scripted, g.fence.Encode()) }
	g.engine = engine.New(cfg.Engine)
	cfg.Conn.OnUp, cfg.Conn.OnDown, cfg.Conn.OnPush = g.engine.NodeUp, g.engine.NodeDown, g.engine.Pushed
	g.lines = waiting.New(waiting.Config{
		Engine: g.engine, Clock: g.clock, Nodes: g.addrs, Retry: cfg.Retry, QueryTimeout: g.queryTimeout(), CloseTimeout: cfg.CloseTimeout,
		NoHandOver: cfg.NoHandOver, Logger: cfg.Logger, Ending: g.ending,
		Ring: cfg.Ring, Release: func(h holding.Hold) { Handle{group: g, hold: h}.ReleaseAsync() },
	})
	g.keeper = holding.NewKeeper(holding.Config{
		Home: g, Clock: g.clock, Tail: cfg.tail,
		Ring: cfg.Ring, Gone: g.freed, Explain: explainAt, OnAttempt: cfg.OnAttempt, OnLockLost: cfg.OnLockLost,
	})
	g.fence.Start(g.engine)
	lock := g.engine.DriverLock()
	lock.Lock() // a quick dialer calls nodeUp, which needs g.fleet
	g.fleet, err = conn.New(cfg.Conn, lock)
	lock.Unlock()
	if err != nil {
		return nil, fmt.Errorf("redlock: %w", err)
	}
	g.engine.Start(g.fleet)
	return g, nil
}

// Await waits until each node has answered or failed a first time. An error is why they must not
// be used.
func (g *Group) Await() error {
	g.fleet.AwaitFirstDials()
	return g.inspect()
}

// Turns is what the client's housekeeper does for the group.
func (g *Group) Turns() []func() time.Duration {
	return []func() time.Duration{g.keeper.Turn, g.lines.Turn, g.fence.Turn}
}

// Engine implements holding.Site.
func (g *Group) Engine() *engine.Engine { return g.engine }

// newFence returns the client's part in fencing.
func (g *Group) newFence(cfg *Config) *fence.Client {
	var persistent uint64
	for node, a := range cfg.Conn.Addresses {
		if a.Persistent {
			persistent |= bit(node)
		}
	}
	var next uint64
	if cfg.members.next != nil {
		next = cfg.members.next.Nodes()
	}
	return fence.New(fence.Config{
		Clock: g.clock, Wall: cfg.FenceClock, Set: cfg.FenceSet, MaxTTL: cfg.Engine.MaxTTL, Persistent: persistent,
		Nodes: g.addrs, Now: cfg.members.now.Nodes(), Next: next,
		QueryTimeout: g.queryTimeout(), ID: rand.Text(), Logger: cfg.Logger, Ending: g.ending,
		Ring: g.cfg.Ring, IsUp: g.isUp, Voting: g.voting,
	})
}

// names is the addresses of the nodes, without credentials.
func names(cfg *Config) (names []string) {
	for _, a := range cfg.Conn.Addresses {
		names = append(names, a.String())
	}
	return names
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
	return misconfigured(nodes, g.fence != nil, g.next != nil)
}

// queryTimeout is how long a node has to answer a query.
func (g *Group) queryTimeout() time.Duration {
	if d := g.cfg.Engine.Timeout; d > 0 {
		return min(d, maxQueryTimeout)
	}
	return defaultQueryTimeout
}

const (
	defaultQueryTimeout = 50 * time.Millisecond
	maxQueryTimeout     = time.Second
)

// Len is the number of nodes.
func (g *Group) Len() int { return g.fleet.Len() }

// Addr names a node, without credentials.
func (g *Group) Addr(node int) string { return g.addrs[node] }

// Number is the number of a node among those of all groups of the client.
func (g *Group) Number(node int) int { return g.cfg.First + node }

// isUp reports whether a node has a connection.
func (g *Group) isUp(node int) bool {
	g.engine.DriverLock().Lock()
	defer g.engine.DriverLock().Unlock()
	return g.fleet.Away()&bit(node) == 0
}

func bit(node int) uint64 { return 1 << uint(node) }

// Stop ends all waits and that locks are kept alive, once Config.Ending is closed. No turn begins
// between it and End.
func (g *Group) Stop() {
	g.lines.Close()
	g.keeper.Close()
}

// End refuses new operations, waits up to CloseTimeout for those under way, and frees everything.
func (g *Group) End() {
	g.lines.LeaveQueues()
	g.engine.Close(g.cfg.CloseTimeout)
}
