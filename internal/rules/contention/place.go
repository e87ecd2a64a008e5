package contention

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/quorum"
)

// Lifetimes of tickets. A process whose ticket ends loses its place, so it renews the ticket at half of it. A dead
// first process delays the others by FirstTicket.
const (
	AloneTicket  = time.Minute
	FirstTicket  = 500 * time.Millisecond
	BehindTicket = 3 * time.Second
)

// Entry is the answer to Enter.
type Entry struct {
	First  bool
	Gap    bool          // a gap is the first
	Others int           // other processes; 2 means 2 or more
	Lease  time.Duration // of the process's own ticket
	Left   time.Duration // of the first process's ticket, if that is another process
	Rung   bool          // the ticket has been shortened already
}

// EntryOfQueue reads the answer of the queue's script: whether the process or a gap is the first, the number of others,
// and the lifetimes of the process's ticket and of the first one's, in milliseconds. ticket is the present lifetime of
// its own ticket.
func EntryOfQueue(said [4]int64, ticket time.Duration) Entry {
	e := Entry{First: said[0] == 1, Gap: said[0] == 2, Others: int(min(max(0, said[1]), 2))}
	e.Lease, e.Left = Millis(said[2]), Millis(said[3])
	e.Rung = e.Lease > FirstTicket && ticket <= FirstTicket
	return e
}

// Millis is a time of n milliseconds, within bounds: n comes from a node.
func Millis(n int64) time.Duration {
	return time.Duration(min(max(0, n), 1<<40)) * time.Millisecond
}

// Entered reports the process's entry into the queue of a step's node. A ring since the step means its turn.
func (c *Contender) Entered(s *Surroundings, step Step, e Entry) {
	had := c.hasTurn() && int(c.seat) == step.Node
	rings := e.Rung || c.early&ofTicket != 0
	rung := !e.First && !e.Gap && rings
	c.seat, c.others = int8(step.Node), uint8(e.Others)
	lease := e.Lease
	if rings {
		c.others = max(c.others, 1)
		lease = min(lease, FirstTicket)
	}
	switch {
	case !e.First && !rung:
		c.standing = behind
	case !had:
		c.standing = first
	}
	switch {
	case e.Gap && step.Way == BehindGap && c.shared:
		c.gap.clear(s.Now)
		c.looks = 0
	case e.Gap && !c.gap.isClearing():
		c.gap.begin(s.Now, min(e.Left, GapLength))
	}
	c.enters = s.Now.Add(max(lease/2, leastLease))
	if !c.hasTurn() {
		c.enters = min(c.enters, s.Now.Add(max(e.Left, leastLease)+s.Jitter))
	}
	c.watched = none
	if c.key != free || !had && c.others > 0 { // the first before it has the lock, as a rule
		c.forget() // each renewal looks at the key again, in case a push was lost
	}
}

// leastLease limits how often senseless answers make a process enter a queue.
const leastLease = 10 * time.Millisecond

// Rung reports a push of the process's ticket by a node, and returns whether this matters. The queue's script shortens
// the ticket of a process for two reasons: it is in turn now, or it is in turn already and keeps others waiting. So a
// process behind others looks at the key, and no longer asks for its place. After a false ring the process is out of
// order until it enters again.
func (c *Contender) Rung(now clock.Instant, node int) bool {
	if int(c.question) == node {
		c.early |= ofTicket
	}
	if int(c.seat) != node || c.standing < behind || c.hasTurn() && c.others > 0 {
		return false
	}
	c.others = max(c.others, 1)
	c.enters = min(c.enters, now.Add(FirstTicket/2))
	if c.standing == behind {
		c.standing = first
		c.forget()
	}
	return true
}

// Failed reports a failed action at a node. The process uses the other nodes for a while.
func (c *Contender) Failed(s *Surroundings, node int) {
	c.Lost(quorum.Only(node))
	if c.failed == nil {
		c.failed = failing{}
	}
	c.failed.add(s.Now, node)
}

// Lost reports nodes whose pushes may be lost.
func (c *Contender) Lost(nodes quorum.Set) {
	if c.seat != none && nodes.Has(int(c.seat)) {
		c.leave()
	}
	if c.watched != none && nodes.Has(int(c.watched)) {
		c.forget()
	}
}

// leave ends its place. A polling process goes on, and one that has had its turn enters at the end.
func (c *Contender) leave() {
	c.seat = none
	c.gap.noClearing()
	if c.standing >= behind {
		c.standing = out
	}
}

// Depart makes the process give up its place. It returns the nodes that may have a ticket of it: a node down for a
// while has kept an earlier one.
func (c *Contender) Depart() (placed quorum.Set) {
	placed = c.placed
	c.leave()
	if c.standing == last {
		c.standing = out
	}
	c.placed, c.others = 0, 0
	return placed
}

// hasTurn reports whether the process is in turn.
func (c *Contender) hasTurn() bool { return c.standing >= first }

// HasOthers reports whether other processes are known to want the lock.
func (c *Contender) HasOthers() bool { return c.others > 0 }

// IsAlone reports whether the process has a place in a queue without others.
func (c *Contender) IsAlone() bool { return c.seat != none && c.standing >= behind && c.others == 0 }

// BlocksOthers reports whether the process has a place in a queue with others in it.
func (c *Contender) BlocksOthers() bool { return c.seat != none && c.others > 0 }

// MayAttempt reports whether the process may ask for the lock after a release by one of its own holders.
func (c *Contender) MayAttempt() bool { return c.seat != none && c.hasTurn() }

// Gates reports whether nodes are to admit no more sharers of the lock.
func (c *Contender) Gates() bool { return c.standing == gating || c.gap.isClearing() }

// Clears reports whether the gap is the process's own, among sharers of the lock.
func (c *Contender) Clears() bool { return c.gap.isClearing() }

// Nodes returns the nodes whose pushes it awaits.
func (c *Contender) Nodes() (nodes quorum.Set) {
	if c.seat != none {
		nodes.Add(int(c.seat))
	}
	if c.watched != none {
		nodes.Add(int(c.watched))
	}
	return nodes
}
