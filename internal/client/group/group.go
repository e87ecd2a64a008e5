// Package group is one quorum of nodes: their connections and their engine, which of them can vote, what they show at a
// key, and the client's part in their fencing. It has the configuration, and the hooks of nodes.
//
// A client may have several groups, and none knows of another. What callers want of them, and what they hold there, is
// package client's.
//
//	New ─> Group.Connect ─> engine ─> fleet, quorum
//	       Group.Await, Ready, Inspect ─> Nodes ─> engine, fence
package group

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/fence"
	"github.com/redlock-go/redlock/internal/client/fleet"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// Group is the nodes of one quorum and everything sent to them. It is safe for concurrent use.
type Group struct {
	*Nodes
	cfg     Config // checked, with its defaults; without passwords
	conn    fleet.Config
	engine  *engine.Engine
	fence   *fence.Client // nil: acquires are not fenced
	waiters Waiters
}

// Waiters learn of what a driver finds out about nodes and keys. They are called with the driver lock held.
type Waiters interface {
	Up(node int, pushes bool)
	Down(node int)
	Regained() // a quorum has its vote again
	KeyChanged(nodes quorum.Set, key []byte, own bool)
}

// New checks cfg. Connect comes next.
func New(cfg Config) (*Group, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, texts.WrongConfig(texts.InConfig, err)
	}
	g := &Group{cfg: cfg, conn: cfg.Conn}
	g.cfg.Nodes, g.cfg.NextNodes, g.cfg.Conn = nil, nil, fleet.Config{} // they hold passwords, and a Client can be printed
	g.Nodes = newNodes(&g.cfg, cfg.Conn.Addresses)
	if cfg.Fenced {
		g.fence = g.newFence(&cfg)
	}
	cfg.Engine.Clock, cfg.Engine.Fence, cfg.Engine.Observer = cfg.Clock, g.fence.Encode(), (*observer)(g)
	cfg.Engine.OnVote, cfg.Engine.OnPanic, cfg.Engine.Peers = g.onVote(cfg.OnVote), g.onPanic, cfg.Peers
	g.engine = engine.New(cfg.Engine)
	g.fence.Start(g.engine)
	return g, nil
}

// Connect begins to connect to the nodes. Await comes next, and End at last, also after an error of Await.
func (g *Group) Connect(w Waiters) error {
	g.waiters, g.regained = w, w.Regained
	cfg := g.conn
	g.conn = fleet.Config{}
	cfg.Clock, cfg.Logger, cfg.Servers, cfg.Lookup = g.cfg.Clock, g.cfg.Logger, g.cfg.Servers, g.cfg.Lookup
	cfg.Probes = func(ask func(func(*resp.Value) error, ...string)) func() uint16 {
		return command.NewProbes(g.cfg.Scripted, g.fence.Encode(), ask).Form
	}
	if err := g.connect(cfg, g.engine, g.fence); err != nil {
		return fmt.Errorf("redlock: %w", err)
	}
	return nil
}

// Config is the checked configuration, with its defaults.
func (g *Group) Config() *Config { return &g.cfg }

// Engine carries operations to the nodes.
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
		Env: g.Env(), Wall: cfg.FenceClock, Set: cfg.FenceSet, MaxTTL: cfg.maxTTL, NextMaxTTL: cfg.NextMaxTTL, Persistent: persistent,
		IsNew: cfg.In == Lists{NextNodes: true},
		Now:   cfg.members.Now.Nodes(), Next: next, Places: cfg.Places,
		ID: rand.Text(), IsUp: g.IsUp, Voting: g.Voting, Forgot: g.Forgot,
	})
}

// ErrForgotten is exported by the root package.
var ErrForgotten = fence.ErrForgotten

// Env is what the rooms of the group share.
func (g *Group) Env() engine.Env {
	timeout := min(cmp.Or(g.cfg.Engine.Timeout, engine.MaxTimeout), maxQueryTimeout)
	return engine.Env{Clock: g.cfg.Clock, Nodes: g.Addrs(), QueryTimeout: timeout, Logger: g.cfg.Logger, Ending: g.cfg.Ending, Ring: g.cfg.Ring}
}

const maxQueryTimeout = time.Second
