// Package client has the calls of one client, and sends each to the group of its key. It puts the other rooms together.
// The root package documents what the calls promise.
//
// A key belongs to one group, in all clients with the same list of groups: see number. So groups share nothing on the
// way of an operation, and a client uses as many cores as it has groups.
//
//	redlock ─> Client.Acquire, AcquireSeveral, Do ─> want: any of some options, each all of its keys
//	                 want, plainly ─> site ─┬─> engine ─> fleet, quorum
//	                                        └─> waiting, fence, token
//	        ─> Handle.Extend, Handle.Release ─> holding, engine
//	        ─> Client.Ready, Stats, Close, …      what is about all groups
//
// # A change of groups
//
// Groups change in two steps, as nodes do: clients of step 0 have the present list, clients of step 1 both, and
// clients of step 2 the next one. A client of step 1 has a group for each number, with the nodes of both lists where
// these differ: there a lock needs a quorum of each (package quorum). It has each key in its group of the present
// list and in its group of the next list.
//
// For most keys this is one group, and nothing is different. All other keys move. Such a key is a set of two places:
// one lease, acquired in one group after the other, in the order of their numbers, and extended and released in both.
// So it excludes clients of step 0 in the one, clients of step 2 in the other, and clients of step 1 in the first.
//
// Here is what a client has once, and not for each group: the clock, the housekeeper's goroutine, the servers of its
// nodes, and its end. None of it is used on the way of a call about one key: no lock is taken there.
package client

import (
	"cmp"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/base/gate"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/group"
	"github.com/redlock-go/redlock/internal/client/texts"
)

// Client is one client, and how its calls ask for locks: With makes others of it, with all else shared. It is safe for
// concurrent use.
type Client struct {
	*shared
	settings settings
}

// shared holds the groups of one client.
type shared struct {
	groups    []*site
	seeds     []uint64 // of the groups, for of
	now, next int      // lengths of the lists; next is 0 but in a change
	house     *housekeeper
	running   *gate.Gate    // calls of Do, perhaps with a lock
	underway  *gate.Gate    // attempts in all groups: see group.Shared
	ending    chan struct{} // closed when the client begins to close
	late      chan struct{} // closed when the wait for operations under way was long enough

	closeTimeout                  time.Duration
	stopping, hurrying, finishing sync.Once // steps of its end
}

// With is the same client, whose calls have these options. A zero one stays as it is.
func (c *Client) With(o Options) *Client { return &Client{c.shared, c.settings.with(o, c.groups[0])} }

// MaxGroups bounds the groups of a client: each has connections, two goroutines and buffers.
const MaxGroups = 64

// New connects to the nodes of cfg, or to groups of nodes in their place. It waits for each group: until a quorum is
// up, or each node has answered or failed once. The housekeeper begins then: a New that refuses its nodes has written
// nothing to them. next is the groups after a change.
func New(cfg group.Config, groups, next [][]string) (*Client, error) {
	if err := check(&cfg, groups, next); err != nil {
		return nil, texts.WrongConfig(texts.InConfig, err)
	}
	c := &Client{shared: &shared{ending: make(chan struct{}), late: make(chan struct{}), running: gate.New(), underway: gate.New(), now: len(groups), next: len(next), seeds: seeds(max(len(groups), len(next)))}}
	c.house = newHousekeeper()
	cfg.CloseTimeout = cmp.Or(cfg.CloseTimeout, closeTimeout)
	c.closeTimeout = cfg.CloseTimeout
	cfg.Shared = group.Shared{Clock: clock.New(), Servers: new(group.Servers), Peers: engine.NewPeers(), Underway: c.underway, Ending: c.ending, Ring: c.house.ring}
	var tasks []func() time.Duration
	for i := range max(1, len(c.seeds)) {
		if len(groups) > 0 {
			cfg.Nodes, cfg.NextNodes, cfg.In = listsOf(i, groups, next)
			cfg.Places = places(i, len(groups), len(next))
		}
		g, err := newSite(cfg)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.groups = append(c.groups, g)
		tasks = append(tasks, g.keeper.Turn, g.lines.Turn, g.Fence.Turn, g.Turn)
		cfg.First += g.Len()
		cfg.Number++
	}
	for _, g := range c.groups {
		if err := g.Await(); err != nil {
			c.Close()
			return nil, err
		}
	}
	for _, g := range c.groups {
		g.WarnUnready()
	}
	c.house.give(tasks)
	c.settings.tail = c.groups[0].Config.Tail
	return c, nil
}
