package histories

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
	"github.com/redlock-go/redlock/quorum"
)

// layout holds the nodes of clients, by their numbers: of one group, or of several.
type layout [][]int

// changes is nodes that change while clients come and go, each at one step of the present change: 0
// with the layout before it, 1 with both, 2 with the one after it. A new client goes one step on
// towards the goal. The goal may turn at any time: then the change is taken back. When all clients
// are at step 2, the next change begins.
type changes struct {
	lists []layout // the change is from one to the next

	mu    sync.Mutex
	rng   random
	at    int          // the layout of step 0
	goal  int          // 0 or 2
	steps []int        // of each client
	runs  []bool       // the running clients
	left  [3]time.Time // when the last client of a step ended
	seen  [3]int       // sessions of each step
	back  int          // steps back
	done  int          // completed changes
}

func (h *history) beginChanges() {
	c := h.changes
	c.rng, c.goal = h.rng(6), 2
	c.steps, c.runs = make([]int, len(h.clients)), make([]bool, len(h.clients))
}

// enter has a client begin, and returns its layouts.
func (c *changes) enter(client int) (now, next layout) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn()
	step := c.steps[client]
	towards := min(max(c.goal, step-1), step+1)
	if c.mayRun(towards) {
		step = towards
	}
	if step < c.steps[client] {
		c.back++
	}
	c.steps[client], c.runs[client] = step, true
	c.seen[step]++
	switch from, to := c.lists[c.at], c.lists[c.at+1]; step {
	case 0:
		return from, nil
	case 1:
		return from, to
	default:
		return to, nil
	}
}

// mayRun is the rule of a change: clients of steps 0 and 2 do not run together, and not while locks
// of the others are held.
func (c *changes) mayRun(step int) bool {
	if step == 1 {
		return true
	}
	opposite := 2 - step
	for _, s := range c.steps { // a stopped client goes on from its step
		if s == opposite {
			return false
		}
	}
	return time.Since(c.left[opposite]) > maxTTL
}

// turn sets the goal, and begins the next change when all clients have completed this one.
func (c *changes) turn() {
	if c.rng.IntN(12) == 0 {
		c.goal = 2 - c.goal
	}
	for _, s := range c.steps {
		if s != 2 {
			return
		}
	}
	if c.at+2 == len(c.lists) {
		return
	}
	c.at, c.goal = c.at+1, 2
	c.done++
	clear(c.steps)
	c.left = [3]time.Time{time.Now()} // no ended client knows the next layout
}

func (c *changes) leave(client int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs[client] = false
	c.left[c.steps[client]] = time.Now()
}

func (c *changes) present() []layout {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists[c.at : c.at+2]
}

// joint is the quorums of groups, over the servers.
func joint(groups ...[]int) (c *quorum.Config) {
	for _, group := range groups {
		nodes := quorum.Set(0)
		for _, i := range group {
			nodes |= bit(i)
		}
		if next := quorum.Majority(nodes); c == nil {
			c = next
		} else {
			c = quorum.Joint(c, next)
		}
	}
	return c
}

// quorumOf is the quorums for the lock on a key in layouts.
func quorumOf(key string, layouts []layout) *quorum.Config {
	var groups [][]int
	for _, l := range layouts {
		groups = append(groups, l[client.Number(key, len(l))])
	}
	return joint(groups...)
}

func bit(node int) quorum.Set { return quorum.Only(node) }

// layouts is all that clients ever have.
func (h *history) layouts() []layout {
	if h.changes == nil {
		return []layout{h.allNodes()}
	}
	return h.changes.lists
}

func (h *history) allNodes() layout {
	var all []int
	for i := range h.Servers {
		all = append(all, i)
	}
	return layout{all}
}

// quorumOn is that of the client on a machine, for a key.
func (h *history) quorumOn(m *virtual.Machine, key string) *quorum.Config {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l, ok := h.clientsOn[m]; ok {
		return quorumOf(key, l)
	}
	return quorumOf(key, h.layouts())
}

// changingSessions is a client that comes and goes during changes of nodes.
func (h *history) changingSessions(i int) {
	rng := h.rng(2, i)
	for n := 0; h.pause(rng.N(100 * time.Millisecond)); n++ {
		ctx, cancel := context.WithTimeout(h.ctx, 100*time.Millisecond+rng.N(1500*time.Millisecond))
		h.session(ctx, i, n, rng)
		cancel()
	}
}

// newChangePlan is a plan with changes: three nodes, five, or one, become others, all or some.
func newChangePlan(seed uint64) *plan {
	p := newPlan(seed)
	p.fenced, p.foreign = false, 0 // these know one list
	for i := range p.clients {
		p.clients[i].settings.Fenced = false
	}
	rng := newRandom(seed, 0xc4a)
	for len(p.nodes) < 7 {
		p.nodes = append(p.nodes, fakeredis.Options{Flavor: fakeredis.Flavor(rng.IntN(3))})
	}
	p.changes = &changes{}
	if grouped := newRandom(seed, 0x9409); grouped.IntN(2) == 0 {
		p.changeGroups(grouped)
	} else {
		list := rng.Perm(len(p.nodes))[:3]
		for range 3 + rng.IntN(3) {
			p.changes.lists = append(p.changes.lists, layout{list})
			list = nextList(rng, list, len(p.nodes))
		}
	}
	p.calm += 4 * time.Second
	return p
}

// changeGroups makes changes of up to five groups: there are more, fewer, or other nodes in some.
func (p *plan) changeGroups(rng random) {
	most, size := 5, 2
	if rng.IntN(2) == 0 {
		most, size = 3, 3
	}
	for len(p.nodes) < most*size {
		p.nodes = append(p.nodes, fakeredis.Options{Flavor: fakeredis.Flavor(rng.IntN(3))})
	}
	for len(p.keys) < 4 {
		p.keys = append(p.keys, fmt.Sprint("k", len(p.keys)))
	}
	var all layout
	for i := range most {
		all = append(all, []int{size * i, size*i + 1, size*i + 2}[:size])
	}
	next := all[:most-1]
	for range 3 + rng.IntN(3) {
		p.changes.lists = append(p.changes.lists, next)
		for now := next; slices.EqualFunc(now, next, slices.Equal); {
			next = slices.Clone(now)
			if n := 1 + rng.IntN(most); n != len(now) && rng.IntN(4) > 0 {
				next = append(slices.Clone(now[:min(n, len(now))]), all[min(n, len(now)):n]...)
			}
			if i := rng.IntN(len(next)); rng.IntN(2) == 0 {
				next[i] = all[i][rng.IntN(size):]
			}
		}
	}
}

// nextList is another list of nodes: one of them is replaced, or there are one, three or five.
func nextList(rng random, list []int, nodes int) (next []int) {
	for next = list; joint(next).Nodes() == joint(list).Nodes(); {
		next = rng.Perm(nodes)[:[]int{1, 3, 3, 5}[rng.IntN(4)]]
		if rng.IntN(2) == 0 {
			next = append(next[:1:1], list[1:]...)
		}
		slices.Sort(next)
		next = slices.Compact(next)
	}
	return next
}

func changeSeeds() uint64 {
	if testkit.Long() {
		return seeds()
	}
	return min(seeds(), 8)
}

// TestChanges: at all moments of a change of nodes, and of its way back, the client keeps its
// promises.
func TestChanges(t *testing.T) {
	t.Parallel()
	var sum struct {
		Grants, Back, Done int
		Seen               [3]int
	}
	n := live(t, changeSeeds(), newChangePlan, func(h *history) {
		c := h.changes
		sum.Grants, sum.Back, sum.Done = sum.Grants+h.ledger.grants, sum.Back+c.back, sum.Done+c.done
		for step, n := range c.seen {
			sum.Seen[step] += n
		}
	})
	t.Logf("%d histories: %+v", n, sum)
	if n < 8 {
		return
	}
	for _, rare := range []int{sum.Grants / 100, sum.Back, sum.Done, sum.Seen[0] / 10, sum.Seen[1] / 10, sum.Seen[2] / 10} {
		require.Greater(t, rare, int(n)/2, "something hardly ever happened")
	}
}

func (c *changes) String() string { return fmt.Sprint(c.lists) }

func (h *history) configure(i int, cfg *redlock.Config) []layout {
	if h.changes == nil {
		cfg.Nodes = h.Nodes
		return h.layouts()
	}
	now, next := h.changes.enter(i)
	now.configure(next, h.Nodes, cfg)
	h.log("client %d has %v, next %v", i, now, next)
	if next == nil {
		return []layout{now}
	}
	return []layout{now, next}
}

// configure gives a client a layout of nodes, and the next one unless it is nil.
func (l layout) configure(next layout, nodes []string, cfg *redlock.Config) {
	if len(l) > 1 || len(next) > 1 {
		cfg.Groups, cfg.NextGroups = l.named(nodes), next.named(nodes)
		return
	}
	cfg.Nodes = l.named(nodes)[0]
	if next != nil {
		cfg.NextNodes = next.named(nodes)[0]
	}
}

func (l layout) named(nodes []string) (groups [][]string) {
	for _, group := range l {
		var names []string
		for _, i := range group {
			names = append(names, nodes[i])
		}
		groups = append(groups, names)
	}
	return groups
}
