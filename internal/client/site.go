package client

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/group"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/client/waiting"
)

// site is a group with what this client wants of it, and holds there. It is safe for concurrent use.
type site struct {
	*group.Group
	clock  *clock.System
	ending <-chan struct{} // closed when the client begins to close
	turn   atomic.Uint32   // where the next choice begins
	plain  bool            // no hook of attempts, and no fencing
	keeper *holding.Keeper
	lines  *waiting.Lines
}

// newSite begins to connect to the nodes of a group. stop and end come last.
func newSite(cfg group.Config) (*site, error) {
	of, err := group.New(cfg)
	if err != nil {
		return nil, err
	}
	g := &site{Group: of}
	g.clock, g.ending = g.Config.Clock, g.Config.Ending
	g.turn.Store(rand.Uint32()) // each client at another key
	g.plain = g.Config.OnAttempt == nil && g.Config.OnAcquire == nil && !g.Config.Fenced
	g.Engine.Site = g
	g.lines = waiting.New(waiting.Config{
		Env: g.Env(), Engine: g.Engine, Retry: g.Config.Retry, CloseTimeout: g.Config.CloseTimeout, NoHandOver: g.Config.NoHandOver,
		Release: func(h holding.Hold) { handleOf(g, h, "", nil).ReleaseAsync() },
	})
	g.keeper = holding.NewKeeper(holding.Config{
		Env: g.Env(), Home: g.Engine, Tail: g.Config.Tail, Gone: g.freed, OnAttempt: g.Config.OnAttempt, OnLockLost: g.Config.OnLockLost,
	})
	return g, g.Connect(g.lines)
}

// stop refuses new locks, and ends all waits and renewals, once Config.Ending is closed.
func (g *site) stop() {
	g.Engine.Ending()
	g.lines.Close()
	g.keeper.Close()
}

// end refuses new operations, waits for those under way until late is closed, and frees everything.
func (g *site) end(late <-chan struct{}) {
	g.lines.LeaveQueues()
	g.Engine.Close(late)
}
