// Package group implements the root package's calls for one quorum of nodes: it has the
// connections, the engine, and the locks that were acquired. It puts the other rooms together,
// and has the configuration and the hooks. The root package documents what the calls promise.
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
	"sync"
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
	engine *engine.Engine
	fleet  *conn.Fleet
	addrs  []string // of the nodes, without credentials
	members
	keeper *holding.Keeper
	house  *housekeeper
	lines  *waiting.Lines
	fence  *fence.Client // nil: acquires are not fenced
	// attached counts the handles of Attach, which no acquire has brought.
	attached atomic.Int64
	closed   sync.Once
	ending   chan struct{} // closed when Close begins

	readiness readiness
}

// New checks cfg, connects to the nodes, and waits until each of them has
// answered or failed a first time.
func New(cfg Config) (*Group, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, texts.WrongConfig(wrong, err)
	}
	g := &Group{clock: clock.New(), addrs: names(&cfg), members: cfg.members, ending: make(chan struct{})}
	g.house = newHousekeeper(g.clock)
	cfg.Engine.Clock, cfg.Conn.Clock = g.clock, g.clock
	cfg.Engine.OnVote, cfg.Engine.OnPanic, cfg.Engine.OnRelease = g.onVote(cfg.OnVote), g.onPanic, g.released
	cfg.Conn.Logger = cfg.Logger
	cfg.Conn.Hidden = sentinels
	cfg.Conn.OnUp, cfg.Conn.OnDown, cfg.Conn.OnPush = g.nodeUp, g.nodeDown, g.pushed
	g.cfg = cfg
	g.cfg.Nodes, g.cfg.NextNodes, g.cfg.Conn = nil, nil, conn.Config{} // they hold passwords, and a Client can be printed
	if cfg.Fenced {
		g.fence = g.newFence(&cfg)
		cfg.Engine.Fence, cfg.Engine.OnForgotten = g.fence.Encode(), g.noVote
		cfg.Conn.Fenced = true // or tokens that come back from an old file would count
	}
	cfg.Conn.Probes = func() conn.Prober { return command.NewProbes(cfg.Scripted, g.fence.Encode()) }
	g.engine = engine.New(cfg.Engine)
	g.lines = waiting.New(waiting.Config{
		Engine: g.engine, Clock: g.clock, Nodes: g.addrs, Retry: cfg.Retry, QueryTimeout: g.queryTimeout(), CloseTimeout: cfg.CloseTimeout,
		NoHandOver: cfg.NoHandOver, Logger: cfg.Logger, Ending: g.ending,
		Ring: g.house.ring, Release: func(h holding.Hold) { Handle{group: g, hold: h}.ReleaseAsync() },
	})
	g.keeper = holding.NewKeeper(holding.Config{
		Engine: g.engine, Clock: g.clock, Tail: cfg.tail,
		Ring: g.house.ring, Gone: g.lines.Freed, Explain: g.explain, OnAttempt: cfg.OnAttempt, OnLockLost: cfg.OnLockLost,
	})
	g.fence.Start(g.engine)
	g.house.tasks = []func() time.Duration{g.keeper.Turn, g.lines.Turn, g.fence.Turn}
	lock := g.engine.DriverLock()
	lock.Lock() // a quick dialer calls nodeUp, which needs g.fleet
	g.fleet, err = conn.New(cfg.Conn, lock)
	lock.Unlock()
	if err != nil {
		return nil, fmt.Errorf("redlock: %w", err)
	}
	g.engine.Start(g.fleet)
	g.fleet.AwaitFirstDials()
	if err := g.inspect(); err != nil {
		g.Close()
		return nil, err
	}
	return g, nil
}

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
		Ring: g.house.ring, IsUp: g.isUp, Voting: g.voting,
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

// isUp reports whether a node has a connection.
func (g *Group) isUp(node int) bool {
	g.engine.DriverLock().Lock()
	defer g.engine.DriverLock().Unlock()
	return g.fleet.Away()&bit(node) == 0
}

func bit(node int) uint64 { return 1 << uint(node) }

// Close refuses new operations, waits up to CloseTimeout for those under way, and
// frees everything.
func (g *Group) Close() {
	g.closed.Do(func() {
		close(g.ending)
		g.lines.Close()
		g.keeper.Close()
		g.house.close()
		g.lines.LeaveQueues()
		g.engine.Close(g.cfg.CloseTimeout)
	})
}
