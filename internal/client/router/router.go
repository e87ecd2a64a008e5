// Package router has the groups of nodes of one client, and sends each call to the group of its
// key.
//
// A group is a quorum of nodes, a driver and a reader, and knows of no other (package group). A
// key belongs to one group, in all clients that list the groups alike: see number. So groups
// share nothing on the way of an operation, and a client uses as many cores as it has groups.
//
//	redlock ─> Router.Acquire, … ─> Group         calls about one key
//	        ─> Router.AcquireAll ─> Group, Group  a lock of several keys: one lease, in several groups
//	        ─> Router.Ready, Stats, Close, …      what is about all groups
//
// # A change of groups
//
// Groups change in two steps, as nodes do: clients of step 0 have the present list, those of step 1
// both, and those of step 2 the next one. A client of step 1 has a group for each number, with the
// nodes of both lists where these differ: there a lock needs a quorum of each (package quorum). It
// has each key in the group that the present list gives it and in the one that the next list does. Where
// that is one group, which is so for all but a share of the keys, nothing is different. Else the key moves, and
// is a set of two places: one lease, which is acquired in one group after the other, in the order of their
// numbers, and is extended and released in both. So it excludes clients of step 0 in the one, those
// of step 2 in the other, and those of step 1 in the first that is asked.
//
// What is once for a client and not for each group is here: the clock, the housekeeper's
// goroutine, the servers that are nodes, and the end of the client.
//
// Invariants:
//
//   - With one group no key is looked at, and each call is that of the group.
//   - No lock is taken in the calls about one key. The housekeeper and the table of servers, which
//     groups share, are used when locks are kept alive, waited for or recovered, and at connects.
package router

import (
	"cmp"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/fleet"
	"github.com/redlock-go/redlock/internal/client/group"
	"github.com/redlock-go/redlock/internal/client/texts"
)

// Router is the groups of one client. It is safe for concurrent use.
type Router struct {
	groups    []*group.Group
	seeds     []uint64 // of the groups, for of
	now, next int      // how many groups each list has; next is 0 but in a change
	house     *housekeeper
	running   running
	ending    chan struct{} // closed when the client begins to close
	late      chan struct{} // closed when what is under way was waited for long enough
	closing   closing

	closeTimeout time.Duration
}

// MaxGroups bounds the groups of a client: each has connections, two goroutines and buffers.
const MaxGroups = 64

// New connects to the nodes of cfg, or in their place to several groups of nodes, and waits until
// each node has answered or failed a first time. next is the groups after a change that is under way.
func New(cfg group.Config, groups, next [][]string) (*Router, error) {
	if err := check(&cfg, groups, next); err != nil {
		return nil, texts.WrongConfig(texts.InConfig, err)
	}
	r := &Router{ending: make(chan struct{}), late: make(chan struct{}), running: newRunning(), now: len(groups), next: len(next), seeds: seeds(max(len(groups), len(next)))}
	c := clock.New()
	r.house = newHousekeeper()
	cfg.CloseTimeout = cmp.Or(cfg.CloseTimeout, closeTimeout)
	r.closeTimeout = cfg.CloseTimeout
	cfg.Shared = group.Shared{Clock: c, Servers: new(fleet.Servers), Peers: engine.NewPeers(), Ending: r.ending, Ring: r.house.ring}
	var tasks []func() time.Duration
	for i := range max(1, len(r.seeds)) {
		if len(groups) > 0 {
			cfg.Nodes, cfg.NextNodes, cfg.In = listsOf(i, groups, next)
			cfg.Places = places(i, len(groups), len(next))
		}
		g, err := group.New(cfg)
		if err != nil {
			r.Close()
			return nil, err
		}
		r.groups = append(r.groups, g)
		tasks = append(tasks, g.Turns()...)
		cfg.First += g.Len()
	}
	r.house.give(tasks)
	for _, g := range r.groups {
		if err := g.Await(); err != nil {
			r.Close()
			return nil, err
		}
	}
	for _, g := range r.groups {
		g.WarnUnready()
	}
	return r, nil
}
