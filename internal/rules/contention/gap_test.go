package contention_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/quorum"
)

// TestAsks: against all its beliefs, a process asks the nodes about once a second.
func TestAsks(t *testing.T) {
	for name, prepare := range map[string]func(c *contention.Contender, s *contention.Surroundings){
		"it has the lock itself":      func(c *contention.Contender, s *contention.Surroundings) { s.Held = s.Now.Add(time.Hour) },
		"a node never pushes":         func(*contention.Contender, *contention.Surroundings) {},
		"no node can push":            func(c *contention.Contender, s *contention.Surroundings) { s.Usable, s.Pause = 0, time.Hour },
		"another is before it":        func(c *contention.Contender, s *contention.Surroundings) {},
		"the node of the queue fails": func(c *contention.Contender, s *contention.Surroundings) { s.Pause = time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			c, s := contend()
			c.Denied(s, 7)
			prepare(c, s)
			last := s.Now
			for asked := 0; asked < 10; {
				switch step := c.Next(s); step.Action {
				case contention.Pause:
					s.Now = step.Until
					require.LessOrEqual(t, s.Now.Sub(last), s.Ask)
				case contention.Enter:
					if name == "the node of the queue fails" {
						c.Failed(s, step.Node)
					} else {
						c.Entered(s, step, contention.Entry{First: name != "another is before it", Others: 1, Lease: time.Hour, Left: time.Hour})
					}
				case contention.Watch:
					c.Watched(s, step.Node, contention.Seen{TTL: time.Hour})
				case contention.Attempt:
					asked, last = asked+1, s.Now
					c.Denied(s, 7)
				case contention.Look:
					asked, last = asked+1, s.Now
					c.Looked(s, false)
				}
			}
		})
	}
}

// TestAFreeLockIsAskedFor: a process behind another looks, and asks for a lock that stays free, in less than two
// seconds. It does not ask before a gap is over and the first has had time to take the lock.
func TestAFreeLockIsAskedFor(t *testing.T) {
	c, s := contend()
	c.Denied(s, 7)
	began, free := s.Now, clock.Never
	for {
		switch step := c.Next(s); step.Action {
		case contention.Pause:
			s.Now = step.Until
		case contention.Enter:
			c.Entered(s, step, contention.Entry{Others: 1, Lease: time.Hour, Left: time.Hour})
		case contention.Look:
			free = min(free, s.Now)
			c.Looked(s, true)
		case contention.Attempt:
			require.Less(t, s.Now.Sub(began), 2*time.Second)
			require.GreaterOrEqual(t, s.Now.Sub(free), 400*time.Millisecond)
			return
		}
		require.Less(t, s.Now.Sub(began), time.Minute)
	}
}

// TestASetBehindOthers: a set asks for its keys in its turns alone, however long ago it last asked.
func TestASetBehindOthers(t *testing.T) {
	c, s := contend()
	s.Set = true
	c.Denied(s, 7)
	for end := s.Now.Add(time.Minute); s.Now < end; {
		step := c.Next(s)
		switch step.Action {
		case contention.Pause:
			require.Greater(t, step.Until, s.Now)
			s.Now = step.Until
		case contention.Enter:
			c.Entered(s, step, contention.Entry{Others: 1, Lease: 3 * time.Second, Left: time.Second})
		default:
			require.Fail(t, "asks", "%+v", step)
		}
	}
}

// TestOutvotedNode: a node outvoted by a grant has the key of no holder, and is not watched.
func TestOutvotedNode(t *testing.T) {
	c, s := contend()
	c.Entered(s, contention.Step{Action: contention.Enter}, contention.Entry{First: true, Lease: time.Hour})
	c.Denied(s, 7)
	watched := c.Next(s)
	require.Equal(t, contention.Watch, watched.Action)
	c.Won(s, 1<<uint(watched.Node), -1)
	c.Entered(s, contention.Step{Action: contention.Enter}, contention.Entry{First: true, Lease: time.Hour})
	c.Denied(s, 7)
	again := c.Next(s)
	require.Equal(t, contention.Watch, again.Action)
	require.NotEqual(t, watched.Node, again.Node)
}

// TestGoesHome: a process entered another node's queue while the lock's own node was unusable. After its turn it moves
// to the queue used by all others.
func TestGoesHome(t *testing.T) {
	c, s := contend()
	home := c.Next(s).Node
	c.Entered(s, contention.Step{Node: home}, contention.Entry{First: true, Lease: time.Hour})
	s.Usable &^= 1 << uint(home)
	other := c.Next(s)
	require.Equal(t, contention.Enter, other.Action)
	c.Entered(s, other, contention.Entry{First: true, Lease: time.Hour})
	s.Usable |= 1 << uint(home)
	require.Equal(t, contention.Attempt, c.Next(s).Action)
	c.Won(s, 0, -1)
	both := quorum.Only(home) | quorum.Only(other.Node) // the home has kept the earlier ticket
	require.Equal(t, contention.Step{Action: contention.Leave, Leave: both}, c.Next(s))
	require.Equal(t, contention.Step{Action: contention.Enter, Node: home}, c.Next(s))
}

// TestNoGapAfterAGap: a gap due while one is open counts as that one.
func TestNoGapAfterAGap(t *testing.T) {
	c, s := contend()
	s.Usable = 0 // it polls
	require.Equal(t, contention.Attempt, c.Next(s).Action)
	c.Due(s.Now, 0)
	gap := c.Next(s)
	require.Equal(t, contention.Step{Until: s.Now.Add(contention.GapLength)}, gap)
	c.Due(s.Now, 0)
	s.Now = gap.Until
	require.Equal(t, contention.Attempt, c.Next(s).Action)
}
