// Package group is one quorum of nodes: their connections and their engine, which of them can vote, what they show at a
// key, and the client's part in their fencing. It has the configuration, and the hooks of nodes.
//
// A client may have several groups, and none knows of another. What callers want of them, and what they hold there, is
// package client's.
//
//	New ─> Group.Connect ─> engine ─> fleet, quorum
//	       Group.Await, Ready, Inspect ─> engine, fence
package group

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/base/knobs"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/fence"
	"github.com/redlock-go/redlock/internal/client/texts"
	"github.com/redlock-go/redlock/internal/client/waiting"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
	"github.com/redlock-go/redlock/resp"
)

// Group holds the nodes of one quorum and everything sent to them: each node's state, its vote, or the reason why it has
// none. The driver lock protects all that changes about a node. Hooks and the log are called later, by the goroutine of
// callbacks. It is safe for concurrent use.
type Group struct {
	Config Config // checked, with its defaults; without passwords
	Engine *engine.Engine
	Fence  *fence.Client

	conn  conn.Config // until Connect
	names []string    // of the nodes, without credentials
	fleet voters
	lines *waiting.Lines // they learn of what a driver finds out about nodes and keys

	changed     chan struct{}               // closed when a node comes up, or has its vote back; nil while no goroutine waits
	quarantines []atomic.Pointer[withdrawn] // the last of each node
	news        []news                      // of each node, for the log
	turn        atomic.Int64                // a clock.Instant: when Turn has something to do
	voting      bool                        // a quorum has its vote
	unready     bool                        // the log says that no lock can be acquired
	warns       atomic.Bool                 // it may have to say so, once the nodes are heard
}

// New checks cfg. Connect comes next.
func New(cfg Config) (*Group, error) {
	cfg, err := cfg.check()
	if err != nil {
		return nil, texts.WrongConfig(texts.InConfig, err)
	}
	g := &Group{Config: cfg, conn: cfg.Conn}
	g.Config.Nodes, g.Config.NextNodes, g.Config.Conn = nil, nil, conn.Config{} // they hold passwords, and a Client can be printed
	g.quarantines, g.news = make([]atomic.Pointer[withdrawn], len(cfg.Conn.Addresses)), make([]news, len(cfg.Conn.Addresses))
	g.turn.Store(int64(clock.Never))
	for _, a := range cfg.Conn.Addresses {
		g.names = append(g.names, a.String())
	}
	g.Fence = g.newFence(&cfg)
	cfg.Engine.Clock, cfg.Engine.Fence, cfg.Engine.Observer = cfg.Clock, g.Fence.Encode(), (*observer)(g)
	cfg.OnAttempt = onAttempt(cfg.OnAttempt)
	cfg.Engine.OnVote, cfg.Engine.OnPanic, cfg.Engine.Peers = g.onVote(cfg.OnVote), g.onPanic, cfg.Peers
	g.Engine = engine.New(cfg.Engine)
	g.Fence.Start(g.Engine)
	return g, nil
}

// Connect begins to connect to the nodes. Await comes next.
func (g *Group) Connect(lines *waiting.Lines) (err error) {
	g.lines = lines
	cfg, e := g.conn, g.Engine
	g.conn = conn.Config{}
	cfg.Logger, cfg.Accept = g.Config.Logger, g.accept
	k := knobs.OfConn(&cfg)
	k.Clock, k.Lookup, k.Stragglers, k.Hidden = g.Config.Clock, g.Config.Lookup, g.Config.Stragglers, sentinels
	k.OnStays = g.stays
	cfg.Probes = func(ask func(func(*resp.Value) error, ...string)) func() uint16 {
		return command.Probe(g.Config.Scripted, g.Fence.Encode(), ask)
	}
	cfg.OnUp, cfg.OnDown, cfg.OnPush = e.NodeUp, e.NodeDown, e.Pushed
	lock := e.DriverLock()
	lock.Lock() // a quick dialer calls Up: it needs the fleet
	g.fleet.init(&g.Config, len(cfg.Addresses))
	g.fleet.Fleet, err = conn.New(cfg, lock)
	lock.Unlock()
	if err != nil {
		return fmt.Errorf("redlock: %w", err)
	}
	e.Start(&g.fleet)
	return nil
}

// newFence returns the client's part in fencing.
func (g *Group) newFence(cfg *Config) *fence.Client {
	if !cfg.Fenced {
		return new(fence.Client)
	}
	var next quorum.Set
	switch {
	case cfg.members.Next != nil:
		next = cfg.members.Next.Nodes()
	case len(cfg.Places) > 1, cfg.NextMaxTTL > 0: // the nodes stay
		next = cfg.members.Now.Nodes()
	}
	return fence.New(fence.Config{
		Env: g.Env(), Wall: cfg.FenceClock, Set: cfg.FenceSet, MaxTTL: cfg.maxTTL, NextMaxTTL: cfg.NextMaxTTL,
		IsNew: cfg.In == Lists{NextNodes: true},
		Now:   cfg.members.Now.Nodes(), Next: next, Places: cfg.Places,
		Looks: cfg.Looks, AnyToken: cfg.AnyToken, ID: rand.Text(), IsUp: g.IsUp, Voting: g.Voting, Forgot: g.Forgot,
	})
}

// Env is what the rooms of the group share.
func (g *Group) Env() engine.Env {
	timeout := min(cmp.Or(g.Config.Engine.Timeout, engine.MaxTimeout), maxQueryTimeout)
	return engine.Env{Clock: g.Config.Clock, Nodes: g.names, QueryTimeout: timeout, Logger: g.Config.Logger, Ending: g.Config.Ending, Ring: g.Config.Ring}
}

const maxQueryTimeout = time.Second
