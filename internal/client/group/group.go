// Package group implements the root package's calls for one quorum of nodes: it has the nodes, the engine, and the
// acquired locks. It puts the other rooms together, and has the configuration and the hooks. The root package
// documents what the calls promise.
//
// A client may have several groups (package client). None knows of another, but a lock of several
// keys may have some in each: its calls then go to the engines of several (holding.Compound).
//
//	New ─> Group.Acquire ─┬─> engine ─> fleet, quorum
//	            │         ├─> waiting, fence
//	            │         └─> token, clock
//	            ├─> Handle.Extend, Handle.Release ─> holding, engine
//	            └─> Group.Inspect, Group.Attach ─> engine
package group

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/fence"
	"github.com/redlock-go/redlock/internal/client/fleet"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/client/waiting"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// Group is the nodes of one quorum and everything sent to them. It is safe for concurrent use.
type Group struct {
	*Nodes
	cfg    Config // checked, with its defaults; without passwords
	clock  *clock.System
	ending <-chan struct{} // closed when the client begins to close
	turn   atomic.Uint32   // where the next choice begins
	plain  bool            // no hook of attempts, and no fencing
	engine *engine.Engine
	keeper *holding.Keeper
	lines  *waiting.Lines
	hooked hooked
	fence  *fence.Client // nil: acquires are not fenced
}

// New checks cfg and begins to connect to the nodes. Await comes next, and Stop and End in the
// end, also after an error of Await.
func New(cfg Config) (*Group, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, texts.WrongConfig(texts.InConfig, err)
	}
	g := &Group{clock: cfg.Clock, ending: cfg.Ending, cfg: cfg}
	g.turn.Store(anyTurn())
	g.plain = cfg.OnAttempt == nil && cfg.OnAcquire == nil && !cfg.Fenced
	g.cfg.Nodes, g.cfg.NextNodes, g.cfg.Conn = nil, nil, fleet.Config{} // they hold passwords, and a Client can be printed
	g.Nodes = newNodes(&g.cfg, cfg.Conn.Addresses)
	if cfg.Fenced {
		g.fence = g.newFence(&cfg)
	}
	cfg.Engine.Clock, cfg.Engine.Fence, cfg.Engine.Observer = g.clock, g.fence.Encode(), (*observer)(g)
	cfg.Engine.OnVote, cfg.Engine.OnPanic, cfg.Engine.Peers = g.onVote(cfg.OnVote), g.onPanic, cfg.Peers
	g.engine = engine.New(cfg.Engine)
	g.lines = waiting.New(waiting.Config{
		Env: g.env(), Engine: g.engine, Retry: cfg.Retry, CloseTimeout: cfg.CloseTimeout, NoHandOver: cfg.NoHandOver,
		Release: func(h holding.Hold) { Handle{group: g, hold: h}.ReleaseAsync() },
	})
	g.regained = g.lines.Regained
	g.keeper = holding.NewKeeper(holding.Config{
		Env: g.env(), Home: g, Tail: cfg.tail, Gone: g.freed, OnAttempt: cfg.OnAttempt, OnLockLost: cfg.OnLockLost,
	})
	g.fence.Start(g.engine)
	cfg.Conn.Clock, cfg.Conn.Logger, cfg.Conn.Servers, cfg.Conn.Lookup = g.clock, cfg.Logger, cfg.Servers, cfg.Lookup
	cfg.Conn.Probes = func(ask func(func(*resp.Value) error, ...string)) func() uint16 {
		return command.NewProbes(cfg.Scripted, g.fence.Encode(), ask).Form
	}
	if err := g.Connect(cfg.Conn, g.engine, g.fence); err != nil {
		return nil, fmt.Errorf("redlock: %w", err)
	}
	return g, nil
}

// Turns is what the client's housekeeper does for the group.
func (g *Group) Turns() []func() time.Duration {
	return []func() time.Duration{g.keeper.Turn, g.lines.Turn, g.fence.Turn, g.Turn}
}

// Engine implements holding.Site.
func (g *Group) Engine() *engine.Engine { return g.engine }

// Fence is the client's part in fencing, or nil.
func (g *Group) Fence() *fence.Client { return g.fence }

// newFence returns the client's part in fencing.
func (g *Group) newFence(cfg *Config) *fence.Client {
	var persistent, next quorum.Set
	for node, a := range cfg.Conn.Addresses {
		if a.Persistent {
			persistent.Add(node)
		}
	}
	switch {
	case cfg.members.Next != nil:
		next = cfg.members.Next.Nodes()
	case len(cfg.Places) > 1, cfg.NextMaxTTL > 0: // the nodes stay
		next = cfg.members.Now.Nodes()
	}
	return fence.New(fence.Config{
		Env: g.env(), Wall: cfg.FenceClock, Set: cfg.FenceSet, MaxTTL: cfg.maxTTL, NextMaxTTL: cfg.NextMaxTTL, Persistent: persistent,
		IsNew: cfg.In == Lists{NextNodes: true},
		Now:   cfg.members.Now.Nodes(), Next: next, Places: cfg.Places,
		ID: rand.Text(), IsUp: g.IsUp, Voting: g.Voting, Forgot: g.Forgot,
	})
}

// ErrForgotten is exported by the root package.
var ErrForgotten = fence.ErrForgotten

// env is what the rooms of the group share.
func (g *Group) env() engine.Env {
	timeout := min(cmp.Or(g.cfg.Engine.Timeout, defaultQueryTimeout), maxQueryTimeout)
	return engine.Env{Clock: g.clock, Nodes: g.Addrs(), QueryTimeout: timeout, Logger: g.cfg.Logger, Ending: g.ending, Ring: g.cfg.Ring}
}

const (
	defaultQueryTimeout = 50 * time.Millisecond
	maxQueryTimeout     = time.Second
)

// Stop refuses new locks, and ends all waits and renewals, once Config.Ending is closed.
func (g *Group) Stop() {
	g.engine.Ending()
	g.lines.Close()
	g.keeper.Close()
}

// GiveBack releases the locks of callers in hooks. All groups do so before one of them ends, since a lock may have keys
// in several, and once no acquire of theirs is under way.
func (g *Group) GiveBack() { g.hooked.giveBack() }

// End refuses new operations, waits for those under way until late is closed, and frees everything.
func (g *Group) End(late <-chan struct{}) {
	g.lines.LeaveQueues()
	g.engine.Close(late)
}
