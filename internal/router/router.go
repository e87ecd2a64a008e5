// Package router has the groups of nodes of one client, and sends each call to the group of its
// key.
//
// A group is a quorum of nodes, a driver and a reader, and knows of no other (package group). A
// key belongs to one group, in all clients that list the groups alike: see [Router.Of]. So groups
// share nothing on the way of an operation, and a client uses as many cores as it has groups.
//
//	redlock ─> Router.Of(key) ─> Group            calls about one key
//	        ─> Router.AcquireAll ─> Group, Group  a lock of several keys: one lease, in several groups
//	        ─> Router.Ready, Stats, Close, …      what is about all groups
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
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/redlock-go/redlock/conn"
	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/internal/group"
	"github.com/redlock-go/redlock/internal/texts"
	"github.com/redlock-go/redlock/quorum"
)

// Router is the groups of one client. It is safe for concurrent use.
type Router struct {
	groups []*group.Group
	seeds  []uint64 // of the groups, for Of
	house  *housekeeper
	closed sync.Once
	ending chan struct{} // closed when Close begins
}

// MaxGroups bounds the groups of a client: each has connections, two goroutines and buffers.
const MaxGroups = 64

// New connects to the nodes of cfg, or in their place to several groups of nodes, and waits until
// each node has answered or failed a first time.
func New(cfg group.Config, groups [][]string) (*Router, error) {
	if err := check(&cfg, groups); err != nil {
		return nil, texts.WrongConfig(texts.InConfig, err)
	}
	r := &Router{ending: make(chan struct{})}
	c := clock.New()
	r.house = newHousekeeper(c)
	cfg.Shared = group.Shared{Clock: c, Servers: new(conn.Servers), Ending: r.ending, Ring: r.house.ring}
	if len(groups) == 0 {
		groups = [][]string{cfg.Nodes}
	}
	var tasks []func() time.Duration
	for i, nodes := range groups {
		cfg.Nodes = nodes
		g, err := group.New(cfg)
		if err != nil {
			r.Close()
			return nil, err
		}
		r.groups, r.seeds = append(r.groups, g), append(r.seeds, seed(i))
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
	return r, nil
}

// label names a group in errors.
func label(i int) string { return fmt.Sprintf("Groups[%d]: ", i) }

// check refuses nodes that are set twice. Each group checks its own.
func check(cfg *group.Config, groups [][]string) error {
	switch {
	case len(groups) == 0:
		return nil
	case len(cfg.NextNodes) > 0:
		return errors.New("both NextNodes and Groups are set: NextNodes changes Nodes, and groups are changed while no client runs")
	case len(cfg.Nodes) > 0:
		return errors.New("both Nodes and Groups are set: set Nodes for one group of masters, Groups for several")
	case len(groups) > MaxGroups:
		return fmt.Errorf("%d Groups, at most %d are allowed", len(groups), MaxGroups)
	}
	seen := make(map[string]int)
	for i, nodes := range groups {
		switch n := len(nodes); {
		case n == 0:
			return fmt.Errorf("%sno nodes: remove the group, or list its masters", label(i))
		case n > quorum.MaxNodes:
			return fmt.Errorf("%s%d nodes, want 1 to %d", label(i), n, quorum.MaxNodes)
		}
		addresses, err := conn.ParseAddresses(nodes)
		if err != nil {
			return fmt.Errorf("%s%w", label(i), err)
		}
		for _, a := range addresses {
			if other, twice := seen[a.Host]; twice && other != i {
				return fmt.Errorf("both Groups[%d] and Groups[%d] have the node %s: each group needs masters that no other has", other, i, a)
			}
			seen[a.Host] = i
		}
	}
	return nil
}

// Of is the group that a key belongs to.
func (r *Router) Of(key string) *group.Group {
	if len(r.groups) == 1 {
		return r.groups[0]
	}
	return r.groups[r.number(key)]
}

// OfBytes is Of for a key that its owner may change later.
func (r *Router) OfBytes(key []byte) *group.Group {
	return r.Of(unsafe.String(unsafe.SliceData(key), len(key)))
}

// Close ends all waits, waits for what is under way, up to CloseTimeout, and frees everything.
func (r *Router) Close() {
	r.closed.Do(func() {
		close(r.ending)
		r.each((*group.Group).Stop)
		r.house.close()
		r.each((*group.Group).End)
	})
}

// each calls f, which runs no user code, for all groups at once.
func (r *Router) each(f func(*group.Group)) {
	var all sync.WaitGroup
	for _, g := range r.groups {
		all.Go(func() { f(g) })
	}
	all.Wait()
}
