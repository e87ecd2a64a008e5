package engine

import (
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/waiters"
)

// waitCheck is what the checker knows of those that wait in line.
type waitCheck struct {
	// What is so in this world.
	cancels int           // percent of the waiters that are cancelled
	extends int           // percent
	passes  bool          // locks pass on, in calm worlds
	brief   bool          // all hold it for less than a millisecond
	oneTTL  time.Duration // that all ask for, or 0

	lines   [8][maxKeys][]*simWaiter // by client, in the order in which they came
	turns   [8][maxKeys]int          // that other clients had since this one's last
	inRow   [8][maxKeys]int          // how often the lock may still pass on
	handles [maxKeys][]*simHandle
	since   [maxKeys]time.Duration // it is free, and waited for

	waits waitCounts
}

// waitCounts is how much there was of all this.
type waitCounts struct {
	granted, alone, passed int
	turns                  int // the most that a process has waited for
	idle                   time.Duration
}

func (c *waitCounts) add(o *waitCounts) {
	c.granted += o.granted
	c.alone += o.alone
	c.passed += o.passed
	c.turns = max(c.turns, o.turns)
	c.idle = max(c.idle, o.idle)
}

const (
	// calmIdle is how long a lock that is waited for may be free where nothing goes wrong: for
	// a few round trips, and the pauses of a process that has come too late twice.
	calmIdle = 60 * time.Millisecond
	// longestIdle is the same where pushes are lost, and after faults: for the tickets of
	// all processes that have died, one behind the other, the time to live of a key that no
	// process deletes, the second for which a node that has failed is not asked, and pauses.
	longestIdle = 4*time.Second + longestTTL + time.Second + 10*longestPause
	longestTTL  = 1200 * time.Millisecond
)

// mostTurns is how many turns others may have in a calm world while a process waits.
func (w *world) mostTurns() int { return 2 * len(w.clients) }

// stands: a waiter has gone to the end of its line.
func (c *checker) stands(w *simWaiter) {
	if !c.isWanted(w.key) {
		c.since[w.key] = c.world.now()
	}
	line := &c.lines[w.client.index][w.key]
	if len(*line) == 0 {
		c.turns[w.client.index][w.key] = 0
	}
	*line = append(*line, w)
}

// departs: a waiter has gone, or will not act any more.
func (c *checker) departs(w *simWaiter) {
	line := &c.lines[w.client.index][w.key]
	if at := slices.Index(*line, w); at >= 0 {
		*line = slices.Delete(*line, at, at+1)
	}
}

// isNext checks that a waiter which gets the lock was the first in its line.
func (c *checker) isNext(w *simWaiter) {
	line := c.lines[w.client.index][w.key]
	if at := slices.Index(line, w); at > 0 {
		c.failf("fifo", "client %d: the waiter at place %d of %d has key %d", w.client.index, at, len(line), w.key)
	}
}

// won: the nodes have granted a waiter the lock, which may pass on so often.
func (c *checker) won(w *simWaiter, passes int) {
	c.isNext(w)
	c.waits.granted++
	most := waiters.MaxPasses - 1
	if c.inRow[w.client.index][w.key] = passes; passes > most {
		c.failf("fair", "client %d: a lock passes on %d times, at most %d are allowed", w.client.index, passes, most)
	}
	c.turn(w)
}

// wonAlone: the nodes have granted the lock to a caller that has met no line. It has found
// the lock free, and asks no queue, so this is no turn.
func (c *checker) wonAlone(w *simWaiter) {
	c.waits.alone++
	c.inRow[w.client.index][w.key] = waiters.MaxPasses - 1
}

// turn: a process has the lock from the nodes.
func (c *checker) turn(w *simWaiter) {
	for _, cl := range c.world.clients {
		turns := &c.turns[cl.index][w.key]
		line := cl.lines.table.Find(w.name)
		if cl == w.client || cl.dead || len(c.lines[cl.index][w.key]) == 0 || line.Contender.Nodes() == 0 { // not in the queue yet
			*turns = 0
			continue
		}
		*turns++
		c.waits.turns = max(c.waits.turns, *turns)
		if c.world.rules.calm && *turns > c.world.mostTurns() {
			c.failf("fair", "client %d waits for key %d, and others have had it %d times since", cl.index, w.key, *turns)
		}
	}
}

// passed: a lock is passed on to a waiter.
func (c *checker) passed(w *simWaiter, l *lock) {
	c.isNext(w)
	c.departs(w)
	c.waits.passed++
	row := &c.inRow[w.client.index][w.key]
	if *row--; *row < 0 {
		c.failf("fair", "client %d: lock %d has passed on too often", w.client.index, l.number)
	}
	if left := l.until - c.world.now(); left < w.ttl*85/100 {
		c.failf("pass", "lock %d is passed on with %v left, and %v was asked for", l.number, left, w.ttl)
	}
	if l.lost {
		c.failf("pass", "lock %d is passed on, and it was lost", l.number)
	}
	l.holding = true
	c.supported(l)
}

// holds: a waiter has a handle on a lock.
func (c *checker) holds(w *simWaiter, h *simHandle) {
	now, l := c.world.now(), h.lease.lock
	for _, other := range c.handles[w.key] {
		if other.lease.lock.until > now && other.live {
			c.failf("handles", "locks %d and %d have live handles on key %d, of lives %d and %d", other.lease.lock.number, l.number, w.key, other.life, h.life)
		}
	}
	c.handles[w.key] = slices.DeleteFunc(c.handles[w.key], func(o *simHandle) bool { return o.lease.lock.until <= now })
	c.handles[w.key] = append(c.handles[w.key], h)
	h.live = true
	c.acquired(l)
	c.look(w.key)
	c.since[w.key] = now
}

// ends: a handle is given back, or its lock was passed on.
func (c *checker) ends(h *simHandle) {
	key := h.lease.lock.key
	c.look(key)
	h.live = false
	c.handles[key] = slices.DeleteFunc(c.handles[key], func(o *simHandle) bool { return o == h })
}

// isWanted says whether any process that runs waits for a key.
func (c *checker) isWanted(key int) bool {
	for _, cl := range c.world.clients {
		if len(c.lines[cl.index][key]) > 0 && !cl.dead && !cl.frozen() {
			return true
		}
	}
	return false
}

// look checks that a lock which is waited for is not free for too long.
func (c *checker) look(key int) {
	now := c.world.now()
	held := !c.world.ending && len(c.world.rules.faults) > 0 || !c.isWanted(key)
	for _, h := range c.handles[key] {
		held = held || h.live && h.lease.lock.until > now
	}
	if l := c.last[key]; held || l != nil && l.holding && l.until > now {
		c.since[key] = now
		return
	}
	most := longestIdle
	if c.world.rules.calm {
		most = calmIdle
	}
	idle := now - c.since[key]
	c.waits.idle = max(c.waits.idle, idle)
	if idle > most {
		c.failf("forgotten", "key %d is free for %v, and waited for", key, idle)
	}
}

// lookAtAll does so from time to time.
func (c *checker) lookAtAll() {
	w := c.world
	for key := range c.keys {
		c.look(key)
	}
	waiting := !w.ending
	for key := range c.keys {
		waiting = waiting || c.isWanted(key)
	}
	if waiting {
		w.after(5*time.Millisecond, c.lookAtAll)
	}
}

// served checks that no waiter is left when nothing happens any more.
func (c *checker) served() {
	for _, cl := range c.world.clients {
		for _, u := range cl.lines.users {
			if u.state != outside && u.state != isDead {
				c.failf("forgotten", "client %d: a waiter for key %d is left in state %d", cl.index, u.key, u.state)
			}
		}
		if cl.lines.known != 0 && !cl.dead {
			c.failf("leak", "client %d keeps %d lines", cl.index, cl.lines.known)
		}
	}
}
