package contention

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// Seen is what a node has in the way of a process.
type Seen struct {
	TTL   time.Duration // 0: nothing, clock.Forever: what does not end
	Steps bool          // it ends in steps: holders of a shared lock leave one by one, and a gate before another lock
}

// A process looks at each change of what ends in steps: freeLooks times at once, and after that once in lookPause. It
// looks once in lookEvery also without a change.
const (
	freeLooks = 64
	lookPause = 10 * time.Millisecond
	lookEvery = 500 * time.Millisecond
)

// Watched reports that a node tracks the key, and what it has seen there.
func (c *Contender) Watched(s *Surroundings, node int, seen Seen) {
	if c.Clears && !seen.Steps { // it is free, or another has it already
		c.looks, c.watched, c.cleared = false, none, true
		c.gap.open = min(c.gap.open, s.Now.Add(GapLength))
		return
	}
	c.watched, c.looks = int8(node), seen.Steps
	if seen.TTL == 0 || c.early && !seen.Steps {
		c.due, c.watched, c.looks = true, none, false
		return
	}
	c.Gates = seen.Steps && !c.shared || c.Clears
	c.expires = clock.Never
	if seen.TTL != clock.Forever {
		c.expires = s.Now.Add(seen.TTL + s.Jitter)
	}
	if !seen.Steps {
		return
	}
	c.expires = min(c.expires, s.Now.Add(lookEvery))
	c.looked++
	if c.looked > freeLooks {
		c.look = s.Now.Add(lookPause)
	}
	if c.early {
		c.watched = none
	}
}

// Look has the process look at the key before its next attempt: it may have been shared since it was free.
func (c *Contender) Look() { c.due, c.watched = false, none }

// Pushed reports that a node has pushed the key, and returns whether this matters.
func (c *Contender) Pushed(node int) bool {
	c.early = c.early || int(c.asking) == node
	if int(c.watched) != node {
		return false
	}
	c.due, c.watched = !c.looks, none
	return true
}

// watch is the node to watch.
func (c *Contender) watch(s *Surroundings) Step {
	among := *s
	// A recently failed node may have the key still, since it has refused the release.
	if recently, _ := c.failed.at(s.Now.Add(-failedMost)); among.Usable&^recently != 0 {
		among.Usable &^= recently
	}
	preferred := c.refused &^ c.outvoted
	if preferred == 0 { // it has not asked in this turn
		preferred = ^c.outvoted
	}
	return Step{Action: Watch, Node: c.home(&among, preferred)}
}

// clearFor bounds a gap of those who share a lock. Only a gate makes it free for others: it is up until the lock has
// been free for GapLength.
const clearFor = 700 * time.Millisecond

// clearing is advised in such a gap.
func (c *Contender) clearing(s *Surroundings) Step {
	switch {
	case !c.gap.isOpen(s.Now):
		c.Clears, c.cleared, c.Gates, c.due = false, false, false, true
		return Step{Action: Enter, Node: int(c.seat)}
	case c.cleared:
		return Step{Until: c.gap.open}
	case c.watched != none:
		return Step{Until: min(c.expires, c.gap.open)}
	case s.Now < c.look:
		return Step{Until: min(c.look, c.gap.open)}
	}
	return c.watch(s)
}

// Steady reports that the lock was shared for long without a break: a gap is due.
func (c *Contender) Steady(now clock.Instant) { c.gap.grants, c.gap.next = gapGrants, now }
