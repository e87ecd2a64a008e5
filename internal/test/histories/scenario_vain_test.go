package histories

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock"
	"github.com/redlock-go/redlock/internal/client"
	"github.com/redlock-go/redlock/internal/test/fakeredis"
	"github.com/redlock-go/redlock/internal/test/testkit"
	"github.com/redlock-go/redlock/internal/test/testkit/virtual"
)

// vain is waiters that cannot win, for reasons of their own. Each begins beside two processes that
// can.
var vain = map[string]struct {
	nodes int
	begin func(s *stage)
}{
	"cut off from a majority": {3, besideQueue(func(l *virtual.Link) { l.Refuse(true); l.Reset() })},
	"the others hang":         {3, besideQueue(func(l *virtual.Link) { l.Hold(true, true) })},
	"a larger MaxTTL": {3, func(s *stage) {
		s.begin(s.ctx, s.Client(func(c *redlock.Config) { c.MaxTTL = time.Hour }), "k", longTTL)
	}},
	"a NodeTimeout below the round trip": {3, func(s *stage) { // it is TTL/20 by default
		m := s.Machine()
		for _, node := range s.Nodes {
			m.Link(node).Delay(2*time.Millisecond, 2*time.Millisecond, 0)
		}
		c, _ := s.ClientOn(m)
		s.begin(s.ctx, c, "k", 50*time.Millisecond)
	}},
	"full": {3, func(s *stage) {
		m := s.Machine()
		c, _ := s.ClientOn(m, func(c *redlock.Config) { c.MaxWaiting, c.NodeTimeout, c.StallTimeout = 1, time.Minute, time.Minute })
		require.NoError(s.T, c.Ready(s.ctx))
		for _, node := range s.Nodes {
			m.Link(node).Hold(false, true)
		}
		for i := 0; c.Stats().Waiting == 0; i++ {
			go func() { _, _ = c.TryAcquire(s.ctx, fmt.Sprint("other ", i), longTTL) }()
			time.Sleep(time.Millisecond)
		}
		s.begin(s.ctx, c, "k", longTTL)
	}},
	"a set with a group that is down":       setWith((*fakeredis.Server).Down),
	"a set with a group that hangs":         setWith(func(n *fakeredis.Server) { n.Delay(time.Minute) }),
	"a set with a group that has restarted": setWith(func(n *fakeredis.Server) { _ = n.Restart(true) }),
}

// besideQueue is a caller whose ways are harmed, but for that to the node with the queue.
func besideQueue(harm func(*virtual.Link)) func(s *stage) {
	return func(s *stage) {
		m := s.Machine()
		c, _ := s.ClientOn(m)
		require.NoError(s.T, c.Ready(s.ctx))
		home := queues(s.World, "k")
		for i, node := range s.Nodes {
			if !slices.Contains(home, i) {
				harm(m.Link(node))
			}
		}
		s.begin(s.ctx, c, "k", longTTL)
	}
}

// setWith is a set of "k" and a key of a group made useless by harm.
func setWith(harm func(*fakeredis.Server)) (of struct {
	nodes int
	begin func(s *stage)
}) {
	of.nodes, of.begin = 6, func(s *stage) {
		c, other := s.deadGroup(harm)
		time.Sleep(100 * time.Millisecond) // a group in quarantine has its connections again
		go func() { _, _ = c.AcquireAll(s.ctx, longTTL, "k", other) }()
	}
	return of
}

// deadGroup is a client with two groups: that of "k" is well and that of the other key is harmed.
func (s *stage) deadGroup(harm func(*fakeredis.Server)) (c *redlock.Client, other string) {
	c = s.Client(func(c *redlock.Config) { c.Nodes, c.Groups = nil, [][]string{s.Nodes[:3], s.Nodes[3:]} })
	require.Zero(s.T, client.Number("k", 2))
	other = permitsIn(2, 2)[1]
	s.release(s.take(c, other, longTTL)) // so its quarantines last for longer than the test
	s.Servers[3:].Each(harm)
	return c, other
}

// queues is the nodes with a queue for a key.
func queues(w *virtual.World, key string) (at []int) {
	for i, n := range w.Servers {
		if slices.Contains(n.Keys(), key+":redlock:queue") {
			at = append(at, i)
		}
	}
	return at
}

// TestVainWaiters: a waiter that cannot win costs the others next to nothing.
func TestVainWaiters(t *testing.T) {
	d, section, least := 6*time.Second, 5*time.Millisecond, 0.7 // its first attempts cost the others up to 1.3 s, once
	if testkit.Long() {
		d, section, least = 10*time.Second, time.Millisecond, 0.8
	}
	without := grantsBeside(t, d, section, 3, nil)
	for name, kind := range vain {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			beside := grantsBeside(t, d, section, kind.nodes, kind.begin)
			t.Logf(name+": grants in %v: %d without, %d beside it, %.2f", d, without, beside, float64(beside)/float64(without))
			require.Greater(t, float64(beside), least*float64(without))
		})
	}
}

// grantsBeside is how often two processes get a lock in d, beside another that begins a little later.
func grantsBeside(t *testing.T, d, section time.Duration, nodes int, begin func(*stage)) int {
	const before = 200 * time.Millisecond
	var got service
	gather(t, nodes, before+d, func(c *crowd) {
		for range 2 {
			c.join(2, &got, section, oneOf(c.ready(func(cfg *redlock.Config) { cfg.Nodes = c.Nodes[:3] }), "k"))
		}
		time.Sleep(before)
		if begin != nil {
			begin(&stage{c.World, c.ctx})
		}
	})
	return got.grants
}

// unfit is running nodes that do not keep the queue. The first is one that is down.
var unfit = []struct {
	name string
	make func(n *fakeredis.Server)
}{
	{"down", (*fakeredis.Server).Down},
	{"OOM", func(n *fakeredis.Server) { refuse(n, refusals[0]) }},
	{"NOPERM", func(n *fakeredis.Server) { n.Deny("ZADD") }},
	{"wrong type", func(n *fakeredis.Server) { n.Plant("k:redlock:queue", "list") }},
	{"slow", func(n *fakeredis.Server) { n.Delay(50 * time.Millisecond) }},
}

// TestUnfitQueueNode: a node that cannot keep the queue costs order no more than one that is down.
func TestUnfitQueueNode(t *testing.T) {
	d, sections := 5*time.Second, []time.Duration{10 * time.Millisecond}
	if testkit.Long() {
		d, sections = time.Minute, append(sections, time.Millisecond)
	}
	const processes = 8
	for _, section := range sections {
		var down time.Duration
		for _, node := range unfit {
			t.Run(fmt.Sprint(node.name, ", ", section), func(t *testing.T) {
				var shares [processes]service
				gather(t, 3, d+200*time.Millisecond, func(c *crowd) {
					for p := range shares {
						client := c.ready(func(c *redlock.Config) { c.NodeTimeout = time.Second })
						c.join(2, &shares[p], section, oneOf(client, "k"))
					}
					time.Sleep(200 * time.Millisecond)
					node.make(c.Servers[queues(c.World, "k")[0]])
				})
				sum, fewest, longest := 0, shares[0].grants, time.Duration(0)
				for _, s := range shares {
					sum, fewest, longest = sum+s.grants, min(fewest, s.grants), max(longest, s.longest)
				}
				if node.name == "down" {
					down = longest
				}
				least := float64(fewest) * processes / float64(sum)
				t.Logf("%v, %s: %d grants, longest wait %v, least share %.2f of fair", section, node.name, sum, longest, least)
				assert.LessOrEqual(t, longest, 2*down+150*time.Millisecond)
				assert.Greater(t, least, 0.8)
			})
		}
	}
}

// TestContendedMovingKey: a key that moves from one group to another has at least half of the
// grants of a set of two keys: to the nodes it is such a set.
func TestContendedMovingKey(t *testing.T) {
	keys := permitsIn(2, 2) // one that stays, and one that moves
	for _, section := range []time.Duration{time.Millisecond, 20 * time.Millisecond} {
		t.Run(section.String(), func(t *testing.T) {
			d := min(4*time.Second, 500*section)
			if testkit.Long() {
				d = 40 * time.Second
			}
			grants := func(configure func(c *redlock.Config, one, both [][]string), lock func(*redlock.Client) locking) int {
				var got service
				gather(t, 6, d, func(c *crowd) {
					for range 4 {
						c.join(2, &got, section, lock(c.ready(func(cfg *redlock.Config) {
							cfg.Nodes = nil
							configure(cfg, [][]string{c.Nodes[:3]}, [][]string{c.Nodes[:3], c.Nodes[3:]})
						})))
					}
				})
				return got.grants
			}
			set := grants(func(c *redlock.Config, _, both [][]string) { c.Groups = both },
				func(c *redlock.Client) locking { return allOf(c, keys...) })
			moving := grants(func(c *redlock.Config, one, both [][]string) { c.Groups, c.NextGroups = one, both },
				func(c *redlock.Client) locking { return oneOf(c, keys[1]) })
			t.Logf("grants in %v: a set of two keys %d, a key that moves %d", d, set, moving)
			require.GreaterOrEqual(t, 2*moving, set)
		})
	}
}
