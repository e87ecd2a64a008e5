package waiters_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlock-go/redlock/internal/waiters"
)

// contend begins a contender for three nodes, which all can push.
func contend() (c *waiters.Contender, s *waiters.Surroundings) {
	c, s = new(waiters.Contender), &waiters.Surroundings{Now: time.Hour, Usable: 7, Pause: 100 * time.Millisecond, Ask: time.Second}
	c.Init("k", []uint64{waiters.Hash("a"), waiters.Hash("b"), waiters.Hash("c")})
	return c, s
}

// TestNoHotLoop: what a node refuses, or answers without sense, at once, and again and again,
// makes a process ask a bounded number of times a second.
func TestNoHotLoop(t *testing.T) {
	first := waiters.Entry{First: true, Lease: 20 * time.Second}
	second := waiters.Entry{Others: 1, Lease: 3 * time.Second, Left: time.Second}
	for name, answer := range map[string]func(c *waiters.Contender, s *waiters.Surroundings, step waiters.Step, home int){
		"the queue fails": func(c *waiters.Contender, s *waiters.Surroundings, step waiters.Step, home int) {
			c.Failed(s, step.Node)
		},
		"watches fail": func(c *waiters.Contender, s *waiters.Surroundings, step waiters.Step, home int) {
			if step.Action == waiters.Watch {
				c.Failed(s, step.Node)
			} else {
				c.Entered(s, step.Node, first)
			}
		},
		"the key is never there": func(c *waiters.Contender, s *waiters.Surroundings, step waiters.Step, home int) {
			if step.Action == waiters.Watch {
				c.Watched(s, step.Node, 0)
			} else {
				c.Entered(s, step.Node, first)
			}
		},
		"no lease": func(c *waiters.Contender, s *waiters.Surroundings, step waiters.Step, home int) {
			c.Entered(s, step.Node, waiters.Entry{})
		},
		"less than none": func(c *waiters.Contender, s *waiters.Surroundings, step waiters.Step, home int) {
			c.Entered(s, step.Node, waiters.Entry{Others: 1, Lease: -time.Hour, Left: -time.Hour})
		},
		"always rung": func(c *waiters.Contender, s *waiters.Surroundings, step waiters.Step, home int) {
			e := second
			e.Rung = true
			c.Entered(s, step.Node, e)
		},
		"rung when it has entered": func(c *waiters.Contender, s *waiters.Surroundings, step waiters.Step, home int) {
			c.Entered(s, step.Node, second)
			c.Rung(step.Node)
		},
	} {
		for _, denied := range []uint64{0, 1, 2, 4, 7} {
			t.Run(name, func(t *testing.T) {
				c, s := contend()
				home := c.Next(s).Node
				actions := 0
				for end := s.Now + time.Second; s.Now < end; {
					require.Less(t, actions, 200)
					switch step := c.Next(s); step.Action {
					case waiters.Pause:
						require.Greater(t, step.Until, s.Now)
						s.Now = step.Until
					case waiters.Attempt:
						actions++
						c.Refused(s, denied)
					case waiters.Leave, waiters.Claim:
						actions++
					default:
						actions++
						answer(c, s, step, home)
					}
				}
			})
		}
	}
}
