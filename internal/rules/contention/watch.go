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
	c.watched, c.looks = node, seen.Steps
	if seen.TTL == 0 || c.early && !seen.Steps {
		c.due, c.watched, c.looks = true, none, false
		return
	}
	c.gates = seen.Steps && !c.shared
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

// Gates reports whether nodes are to let none share the lock that does not yet: the process has its turn, and waits for
// those who do.
func (c *Contender) Gates() bool { return c.gates }

// Pushed reports that a node has pushed the key, and returns whether this matters.
func (c *Contender) Pushed(node int) bool {
	c.early = c.early || c.asking == node
	if c.watched != node {
		return false
	}
	c.due, c.watched = !c.looks, none
	return true
}
