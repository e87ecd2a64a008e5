package contention

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// Seen is a node's answer about the obstacles to a process: keys, gates and gaps.
type Seen struct {
	TTL   time.Duration // 0: no key; clock.Forever: a key without an end
	Steps bool          // it ends in steps: holders of a shared lock leave one by one, and a gate goes before another lock
	Gap   bool          // the queue has left a gap lately
}

// A process looks at each change of a key that ends in steps: freeLooks times at once, and after that once in
// lookPause. Without a change it still looks once in lookEvery.
const (
	freeLooks = 64
	lookPause = 10 * time.Millisecond
	lookEvery = 500 * time.Millisecond
)

// Watched reports that a node tracks the key, and what the process has seen there.
func (c *Contender) Watched(s *Surroundings, node int, seen Seen) {
	if seen.Gap && c.gap.state == due {
		c.gap.state = closed
	}
	if c.gap.isClearing() && !seen.Steps { // it is free, or another has it already
		c.forget()
		c.gap.cleared(s.Now)
		return
	}
	if seen.TTL == 0 || c.early&ofKey != 0 && !seen.Steps {
		c.freed()
		return
	}
	c.key, c.watched, c.expires = tracked, int8(node), clock.Never
	if seen.TTL != clock.Forever {
		c.expires = s.Now.Add(seen.TTL + s.Jitter)
	}
	if c.standing == gating {
		c.standing = first
	}
	if !seen.Steps {
		return
	}
	if c.standing == first && !c.shared {
		c.standing = gating
	}
	c.key, c.expires = stepped, min(c.expires, s.Now.Add(lookEvery))
	c.looks++
	if c.looks > freeLooks {
		c.look = s.Now.Add(lookPause)
	}
	if c.early&ofKey != 0 {
		c.forget()
	}
}

// Pushed reports a push of the key by a node, and returns whether this matters.
func (c *Contender) Pushed(node int) bool {
	if int(c.question) == node {
		c.early |= ofKey
	}
	switch {
	case int(c.watched) != node:
		return false
	case c.key == stepped:
		c.forget()
	default:
		c.freed()
	}
	return true
}

// watch chooses the node to watch.
func (c *Contender) watch(s *Surroundings) Step {
	among := *s
	// A recently failed node may still have the key, since it has refused the release.
	if recently, _ := c.failed.at(s.Now.Add(-failedMost)); among.Usable&^recently != 0 {
		among.Usable &^= recently
	}
	preferred := c.denied &^ c.outvoted
	if preferred == 0 { // it has not asked in this turn
		preferred = ^c.outvoted
	}
	node := c.home(&among, preferred)
	return Step{Action: Watch, Node: node, Gaps: c.gap.isDue(s.Now) && node == int(c.seat)}
}

// clearing is the advice in a gap among sharers.
func (c *Contender) clearing(s *Surroundings) Step {
	switch {
	case !c.gap.isOpen(s.Now):
		c.gap.noClearing()
		c.freed()
		return Step{Action: Enter, Node: int(c.seat)}
	case c.gap.state == clear:
		return Step{Until: c.gap.until}
	case c.watched != none:
		return Step{Until: min(c.expires, c.gap.until)}
	case s.Now < c.look:
		return Step{Until: min(c.look, c.gap.until)}
	}
	return c.watch(s)
}
