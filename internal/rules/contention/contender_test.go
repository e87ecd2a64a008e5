package contention_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/quorum"
)

// contend begins a contender for three nodes, all able to push.
func contend() (c *contention.Contender, s *contention.Surroundings) {
	c, s = new(contention.Contender), &contention.Surroundings{Now: clock.Instant(time.Hour), Usable: 7, Names: []uint64{contention.Hash("a"), contention.Hash("b"), contention.Hash("c")}, Pause: 100 * time.Millisecond, Ask: time.Second}
	c.Init("k")
	return c, s
}

// TestNoHotLoop: immediate refusals or senseless answers of a node, again and again, make a process
// ask a bounded number of times a second.
func TestNoHotLoop(t *testing.T) {
	type said func(c *contention.Contender, s *contention.Surroundings, step contention.Step)
	entered := func(e contention.Entry) said {
		return func(c *contention.Contender, s *contention.Surroundings, step contention.Step) { c.Entered(s, step, e) }
	}
	watched := func(seen contention.Seen) said {
		return func(c *contention.Contender, s *contention.Surroundings, step contention.Step) {
			c.Watched(s, step.Node, seen)
		}
	}
	failed := func(c *contention.Contender, s *contention.Surroundings, step contention.Step) {
		c.Failed(s, step.Node)
	}
	first := entered(contention.Entry{First: true, Lease: 20 * time.Second})
	second := contention.Entry{Others: 1, Lease: 3 * time.Second, Left: time.Second}
	rung := second
	rung.Rung = true
	for name, answer := range map[string]struct{ enter, watch said }{ // without a watch, to both
		"the queue fails":        {enter: failed},
		"watches fail":           {first, failed},
		"the key is never there": {first, watched(contention.Seen{})},
		"holders leave all the time": {first, func(c *contention.Contender, s *contention.Surroundings, step contention.Step) {
			c.Watched(s, step.Node, contention.Seen{TTL: time.Minute, Steps: true})
			c.Pushed(step.Node)
		}},
		"no lease":       {enter: entered(contention.Entry{})},
		"less than none": {enter: entered(contention.Entry{Others: 1, Lease: -time.Hour, Left: -time.Hour})},
		"always rung":    {entered(rung), watched(contention.Seen{TTL: time.Minute})},
		"rung when it has entered": {enter: func(c *contention.Contender, s *contention.Surroundings, step contention.Step) {
			c.Entered(s, step, second)
			c.Rung(s.Now, step.Node)
		}, watch: watched(contention.Seen{TTL: time.Minute})},
	} {
		for _, denied := range []quorum.Set{0, 1, 2, 4, 7} {
			c, s := contend()
			actions := 0
			for end := s.Now.Add(time.Second); s.Now < end; {
				require.Less(t, actions, 200, name)
				switch step := c.Next(s); step.Action {
				case contention.Pause:
					require.Greater(t, step.Until, s.Now)
					s.Now = step.Until
				case contention.Attempt:
					actions++
					c.Denied(s, denied)
				case contention.Look:
					actions++
					c.Looked(s, denied == 0)
				case contention.Leave:
					actions++
				default:
					actions++
					if step.Action == contention.Watch && answer.watch != nil {
						answer.watch(c, s, step)
					} else {
						answer.enter(c, s, step)
					}
				}
			}
		}
	}
}

// TestChangedBeforeTheAnswer: a change known before the node's answer counts. This process has released the key itself,
// confirmed by a quorum, while the question is on its way to a slow node.
func TestChangedBeforeTheAnswer(t *testing.T) {
	c, s := contend()
	entered := c.Next(s)
	require.Equal(t, contention.Enter, entered.Action)
	c.Entered(s, entered, contention.Entry{First: true, Lease: time.Minute})
	require.Equal(t, contention.Attempt, c.Next(s).Action)
	c.Denied(s, 7)
	step := c.Next(s)
	require.Equal(t, contention.Watch, step.Action)
	require.False(t, c.Pushed(step.Node), "it waits for the answer")
	c.Watched(s, step.Node, contention.Seen{TTL: time.Minute})
	require.Equal(t, contention.Attempt, c.Next(s).Action)
}

// TestThoseWhoShareAreInTheWay: the first of the queue gates, and looks at each change before it asks.
func TestThoseWhoShareAreInTheWay(t *testing.T) {
	c, s := contend()
	step := c.Next(s)
	require.False(t, step.Shared)
	c.Entered(s, step, contention.Entry{First: true, Others: 1, Lease: time.Minute})
	c.Denied(s, 7)
	watch := func() int {
		step := c.Next(s)
		require.Equal(t, contention.Watch, step.Action)
		return step.Node
	}
	node := watch()
	require.False(t, c.Gates())
	c.Watched(s, node, contention.Seen{TTL: time.Minute, Steps: true})
	require.True(t, c.Gates())
	require.True(t, c.Pushed(node), "one has left")
	c.Watched(s, watch(), contention.Seen{TTL: time.Minute, Steps: true})
	step = c.Next(s)
	require.Equal(t, contention.Pause, step.Action)
	require.LessOrEqual(t, step.Until, s.Now.Add(500*time.Millisecond), "a gate is put up again")
	s.Now = step.Until
	c.Watched(s, watch(), contention.Seen{})
	require.True(t, c.Gates(), "until it has the lock")
	require.Equal(t, contention.Attempt, c.Next(s).Action)
	c.Won(s, 0, -1)
	require.False(t, c.Gates())
}

// TestKindsOfTurns: a process whose next caller is of the other kind enters again, at the end.
func TestKindsOfTurns(t *testing.T) {
	c, s := contend()
	s.Shared = true
	step := c.Next(s)
	require.True(t, step.Shared)
	c.Entered(s, step, contention.Entry{First: true, Lease: time.Minute})
	require.Equal(t, contention.Attempt, c.Next(s).Action)
	c.Won(s, 0, -1)
	require.Equal(t, contention.Attempt, c.Next(s).Action, "with no other in the queue the next may share it at once")
	c.Denied(s, 7)
	node := c.Next(s).Node
	c.Watched(s, node, contention.Seen{TTL: time.Second, Steps: true})
	require.False(t, c.Gates(), "it shares")
	s.Shared = false
	step = c.Next(s)
	require.Equal(t, contention.Step{Action: contention.Enter, Node: step.Node, Way: contention.AtEnd}, step)
}
