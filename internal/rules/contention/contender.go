package contention

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/quorum"
)

// Contender is what a process does, for all its waiters together, to get a lock that others want too.
//
// Processes that want a lock queue up on one node: the first usable one in the lock's own order. Only the first in the
// queue asks the nodes for the lock. Before that it tracks the key on one node, and waits for this node's push, or for
// the key's expiry there. So a released lock is asked for once, by one process, at once.
type Contender struct {
	hash uint64 // of the key: it gives the lock's order of the nodes

	// Its place in a queue.
	seat   int8          // the node of the queue, or none
	again  bool          // it has had its turn, and enters at the end
	rung   bool          // its place may have changed
	first  bool          // it has its turn
	rings  int32         // entries in a row after a ring, without a win
	Others int32         // processes that are known to want the lock too
	placed quorum.Set    // nodes that may have a ticket of the process, lost places included
	calm   clock.Instant // no ring is heeded before
	renew  clock.Instant // when it enters again, to keep its place
	change clock.Instant // when another first will have lost its place, unless it renews

	// Its attempts, and what it waits for before the next.
	asking   int8          // node to be entered or watched, or none
	early    bool          // that node has pushed since, perhaps before its answer was known
	watched  int8          // node tracking the key, or none
	due      bool          // the lock may be free: ask the nodes
	aside    bool          // the last attempt was refused by no holder: the process polls, outside the queue
	asks     bool          // the present attempt is made at ask
	Attempts int32         // failed ones in a row, each right after the key was free
	expires  clock.Instant // end of the watched key
	pause    clock.Instant // no attempt before
	poll     clock.Instant // nor before this, where no node can push
	ask      clock.Instant // an attempt then, despite the advice of the fields above
	refused  quorum.Set    // nodes that denied the last attempt
	outvoted quorum.Set    // nodes outvoted by the last grant: their key is no holder's
	failed   failing       // nodes not asked for a while

	// Those who share the lock.
	shared  bool          // its present callers do, and its place is with others that do
	looks   bool          // what is in the way ends in steps: each change is looked at, before an attempt
	Gates   bool          // it has its turn, and they are in the way: nodes are to let no others share the lock
	claims  bool          // it has asked for a gap, among them
	Clears  bool          // the gap is its own: it waits until no other shares the lock, to leave it free
	cleared bool          // none does
	looked  int32         // times since the last attempt
	look    clock.Instant // not again before

	gap gap
}

const none = -1

// Init begins a contender for a lock.
func (c *Contender) Init(key string) {
	*c = Contender{hash: Hash(key), seat: none, watched: none, asking: none, due: true}
}

// Action is what a contender does next.
type Action uint8

const (
	Pause   Action = iota // until Step.Until, or the next report
	Attempt               // to get the lock from all nodes
	Enter                 // the queue of Step.Node, in Step.Way
	Leave                 // the queues of Step.Leave, and call Next at once
	Watch                 // the key on Step.Node
)

// Way is how a process enters a queue.
type Way uint8

const (
	InPlace   Way = iota // at the end, or where it is there already
	AtEnd                // at the end
	BehindGap            // in place, with a gap before all, unless the queue has left one lately
)

// Step is an action with its details.
type Step struct {
	Action Action
	Node   int
	Way    Way
	Shared bool // it enters among those who share the lock
	Leave  quorum.Set
	Until  clock.Instant // of Pause
}

// Surroundings is what a contender looks at.
type Surroundings struct {
	Now    clock.Instant
	Names  []uint64      // a hash of each node's name
	Usable quorum.Set    // nodes that are up and can push
	Slow   quorum.Set    // slower than the others
	Held   clock.Instant // known end of a lock held in this process
	Pause  time.Duration // between attempts, where there are no pushes
	Jitter time.Duration // small, added to instants known to several processes
	Ask    time.Duration // from one attempt to the next at most
	Shared bool          // the first caller in line wants to share the lock
}

// Next decides what to do.
func (c *Contender) Next(s *Surroundings) Step {
	c.asks = false
	if c.shared != s.Shared { // the other kind has its turn after those that are in the queue now
		c.shared, c.again, c.Gates, c.Clears, c.watched = s.Shared, true, false, false, none
	}
	step := c.advised(s)
	switch {
	case step.Action == Attempt && c.gap.isDue(s.Now):
		step = c.leaveFree(s)
	case step.Action == Pause && s.Now >= c.ask && !c.gap.isOpen(s.Now):
		step, c.asks = Step{Action: Attempt}, true
	}
	if step.Action == Pause && !c.gap.isOpen(s.Now) {
		step.Until = min(step.Until, c.ask)
	}
	c.asking, c.early = none, false
	switch step.Action {
	case Enter:
		c.placed.Add(step.Node)
		step.Shared = c.shared
		fallthrough
	case Watch:
		c.asking = int8(step.Node)
	}
	return step
}

// leaveFree begins a gap. In a queue that is a place before all others, one for all processes.
func (c *Contender) leaveFree(s *Surroundings) Step {
	if c.seat != none {
		c.gap.grants = 0 // where another process has left one lately, the next comes after as many grants
		c.claims = c.shared
		return Step{Action: Enter, Node: int(c.seat), Way: BehindGap}
	}
	c.gap.begin(s.Now, c.gap.long(s.Now))
	return Step{Until: c.gap.open}
}

// advised is what queue, watch and own belief advise.
func (c *Contender) advised(s *Surroundings) Step {
	if polls := s.Usable == 0; polls != c.gap.polls {
		c.gap.polls = polls
		if polls {
			c.gap.next = min(c.gap.next, s.Now.Add(pollTurn))
		}
	}
	c.Lost(^s.Usable)
	if c.gap.polls {
		return c.polls(s)
	}
	if c.aside {
		if c.seat != none {
			return Step{Action: Leave, Leave: c.Depart()}
		}
		return c.polls(s)
	}
	out, until := c.failed.at(s.Now)
	well := *s
	well.Usable &^= out
	if well.Usable == 0 {
		step := c.polls(s)
		if step.Action == Pause && s.Held <= s.Now {
			step.Until = min(step.Until, until)
		}
		return step
	}
	home := c.home(&well, quorum.Everything)
	if c.seat != none && int(c.seat) != home && (c.again || s.Slow.Has(int(c.seat))) {
		return Step{Action: Leave, Leave: c.Depart()}
	}
	if c.seat == none || c.again || c.rung && s.Now >= c.calm || s.Now >= c.renew || !c.first && s.Now >= c.change {
		enter := Step{Action: Enter, Node: home}
		if c.again {
			enter.Way = AtEnd
		}
		if c.seat != none {
			enter.Node = int(c.seat)
			c.rings++
			if !c.rung {
				c.rings = 0
			}
		}
		return enter
	}
	step := c.inQueue(&well)
	if step.Action == Pause && c.rung {
		step.Until = min(step.Until, c.calm)
	}
	return step
}

// inQueue is advised for a process in a queue. Failing nodes are not usable.
func (c *Contender) inQueue(s *Surroundings) Step {
	if c.looks && s.Now >= c.expires {
		c.watched = none
	}
	switch {
	case c.Clears:
		return c.clearing(s)
	case !c.first:
		return Step{Until: min(c.change, c.renew)}
	case s.Held > s.Now:
		return Step{Until: min(s.Held.Add(s.Jitter), c.renew)}
	case s.Now < c.pause:
		return Step{Until: min(c.pause, c.renew)}
	case c.due || c.watched != none && s.Now >= c.expires:
		return Step{Action: Attempt}
	case c.watched == none && s.Now < c.look:
		return Step{Until: min(c.look, c.renew)}
	case c.watched == none:
		return c.watch(s)
	}
	return Step{Until: min(c.expires, c.renew)}
}

// polls is advised where no node can push: attempts with pauses between them.
func (c *Contender) polls(s *Surroundings) Step {
	switch {
	case c.gap.isOpen(s.Now):
		return Step{Until: c.gap.open}
	case s.Held > s.Now:
		return Step{Until: s.Held.Add(s.Jitter)}
	case s.Now < c.poll:
		return Step{Until: c.poll}
	}
	return Step{Action: Attempt}
}

// home is the first node in the lock's order among the usable, preferred and fast ones; or else, among the usable ones.
func (c *Contender) home(s *Surroundings, preferred quorum.Set) int {
	among := s.Usable
	for _, set := range [...]quorum.Set{^s.Slow, preferred} {
		if among&set != 0 {
			among &= set
		}
	}
	home := among.Least()
	for node := range among.All() {
		if Mix(c.hash^s.Names[node]) > Mix(c.hash^s.Names[home]) {
			home = node
		}
	}
	return home
}

// Entry is the answer to Enter.
type Entry struct {
	First  bool
	Gap    bool // a gap is the first
	Others int
	Lease  time.Duration // of the own ticket
	Left   time.Duration // of the first's ticket, if that is another's
	Rung   bool          // the ticket has been shortened already
}

// EntryOfQueue reads the answer of the queue's script: whether the process is the first or a gap is,
// the number of others, and the lifetimes of its ticket and of the first's, in milliseconds. ticket is the
// present lifetime of its own ticket, and short the one given to the first of several.
func EntryOfQueue(said [4]int64, ticket, short time.Duration) Entry {
	e := Entry{First: said[0] == 1, Gap: said[0] == 2, Others: int(said[1])}
	e.Lease, e.Left = Millis(said[2]), Millis(said[3])
	e.Rung = e.Lease > short && ticket <= short
	return e
}

// Millis is a time of n milliseconds, within bounds: n comes from a node.
func Millis(n int64) time.Duration {
	return time.Duration(min(max(0, n), 1<<40)) * time.Millisecond
}

// Entered reports that the process is in a node's queue.
func (c *Contender) Entered(s *Surroundings, node int, e Entry) {
	was := c.first && int(c.seat) == node && !c.again
	c.seat, c.again, c.rung = int8(node), false, e.Rung || c.early
	c.first, c.Others = e.First, int32(e.Others)
	c.Gates = c.Gates && (c.first || c.Clears)
	switch {
	case e.Gap && c.claims:
		c.gap.begin(s.Now, clearFor)
		c.Clears, c.Gates, c.looked = true, true, 0
	case e.Gap && !c.Clears:
		c.gap.begin(s.Now, min(e.Left, GapLength))
	}
	c.claims = false
	c.renew = s.Now.Add(max(e.Lease/2, leastLease))
	c.change = s.Now.Add(max(e.Left, leastLease) + s.Jitter)
	c.calm = 0
	if c.rings > freeRings { // a full tracking table drops the newest key, and pushes it
		c.calm = s.Now.Add(backoff(s, c.rings-freeRings))
	}
	if !was && c.Others > 0 { // the first before it has the lock, as a rule
		c.due = false
	}
	c.watched = none // each renewal looks at the key again, in case a push was lost
}

// leastLease bounds how often a process enters a queue with senseless answers.
const leastLease = 10 * time.Millisecond

// Failed reports that an action at a node has failed. For a while the process uses the others.
func (c *Contender) Failed(s *Surroundings, node int) {
	c.Lost(quorum.Only(node))
	if c.failed == nil {
		c.failed = failing{}
	}
	c.failed.add(s.Now, node)
}

// Lost reports that pushes of nodes may be lost.
func (c *Contender) Lost(nodes quorum.Set) {
	if c.seat != none && nodes.Has(int(c.seat)) {
		c.seat, c.first = none, false
	}
	if c.watched != none && nodes.Has(int(c.watched)) {
		c.watched = none
	}
}

// Refused reports that an attempt has not won: the nodes of denied have the key already. With the nodes out of reach,
// denied is empty.
func (c *Contender) Refused(s *Surroundings, denied quorum.Set) {
	c.refused, c.aside, c.poll, c.ask = denied, denied == 0, s.Now.Add(s.Pause), s.Now.Add(s.Ask)
	switch {
	case denied == 0:
		c.due, c.watched, c.pause = true, none, c.poll
	case c.asks: // nothing is new
		if c.watched != none && !denied.Has(int(c.watched)) {
			c.watched = none // this attempt has set and deleted the key there, and so ended its tracking
		}
	default:
		c.due, c.watched, c.looked = false, none, 0
		c.Attempts++
		if c.Attempts > freeAttempts {
			c.pause = s.Now.Add(backoff(s, c.Attempts-freeAttempts))
		}
	}
	switch {
	case denied == 0:
	case c.gap.polls:
		c.gap.rivals = s.Now.Add(rivalsLast)
	default: // it may be a holder of its own
		c.gap.rivals = max(c.gap.rivals, s.Now.Add(GapLength+GapInterval))
	}
	c.asks = false
}

// Asked reports that the nodes were asked just now, for a caller of several keys.
func (c *Contender) Asked(s *Surroundings) {
	c.poll = s.Now.Add(s.Pause)
	c.ask = max(c.ask, c.poll)
}

// Queues has the process take its turn in the queue before it asks the nodes, at the latest then.
func (c *Contender) Queues(until clock.Instant) { c.ask = until }

// Keep reports that an attempt has not won, though no node has refused it. A process with its turn, or one that polls,
// keeps that until then, or until the lock is freed. Keep reports whether it had its turn: it may have asked before.
func (c *Contender) Keep(s *Surroundings, until clock.Instant) bool {
	c.poll, c.ask, c.asks = s.Now.Add(s.Pause), s.Now.Add(s.Ask), false
	if c.first {
		c.pause = until
	}
	return c.first || c.seat == none
}

// backoff is the pause after n vain tries in a row, from 1.
func backoff(s *Surroundings, n int32) time.Duration {
	return min(s.Pause, s.Jitter+time.Millisecond<<min(n, 16))
}

// freeAttempts is how many failed attempts may follow each other without a pause: the key of
// another holder has come between, or pushes are forged.
const freeAttempts = 2

// freeRings is how many rings without a turn are heeded at once. Eight processes contending for a
// lock waited for 131 ms (p99) with 2, and for 23 to 28 ms with 8.
const freeRings = 8

// Won reports that the process has the lock, refused by the nodes of denied alone. If others want it too, it enters the
// queue at the end. If none does it stays the first: a later process rings it. A place at a node other than the lock's
// home is given up, though: the home was not usable for a while, and the others meet there.
func (c *Contender) Won(s *Surroundings, denied quorum.Set) {
	c.again = !c.first || c.Others > 0 || c.rung || c.seat != none && int(c.seat) != c.home(s, quorum.Everything)
	c.due, c.watched, c.refused, c.Attempts, c.rings, c.pause, c.poll = false, none, 0, 0, 0, 0, 0
	c.asks, c.aside, c.outvoted, c.ask = false, false, denied, s.Now.Add(s.Ask)
	c.Gates, c.looked = false, 0
	c.due = c.shared // the next may share it
	c.gap.granted(s.Now)
}

// Freed reports that a holder in this process has released the lock.
func (c *Contender) Freed() { c.due, c.asks, c.pause, c.poll = true, false, 0, 0 }

// Passed reports that the lock was passed on inside this process.
func (c *Contender) Passed(now clock.Instant) { c.gap.granted(now) }

// Unwanted reports that a holder in this process has released the lock, with no waiter here.
func (c *Contender) Unwanted(now clock.Instant) {
	if c.Others == 0 {
		c.gap.idle = now
	}
}

// LeavesFree reports whether the lock is left free for clients outside the queue, now or from its next release on.
func (c *Contender) LeavesFree(now clock.Instant) bool { return c.gap.isOpen(now) || c.gap.isDue(now) }

// FreeUntil is until when the lock is left free for clients outside the queue, or 0: it is not.
func (c *Contender) FreeUntil(now clock.Instant) clock.Instant {
	if c.gap.isOpen(now) {
		return c.gap.open
	}
	return 0
}

// Rung reports that a node has pushed the process's ticket, and returns whether this matters.
func (c *Contender) Rung(node int) bool {
	c.early = c.early || int(c.asking) == node
	if int(c.seat) != node || c.rung {
		return false
	}
	c.rung = true
	return true
}

// BlocksOthers reports whether the process has a place in a queue with others in it.
func (c *Contender) BlocksOthers() bool { return c.seat != none && (c.Others > 0 || c.rung) }

// Ask has the process ask the nodes at its next turn, and reports whether it will: not during a gap.
func (c *Contender) Ask(now clock.Instant) bool {
	c.ask = 0
	return !c.gap.isOpen(now)
}

// Apart has the gaps of one of n locks come at other times than those of the others: some callers
// want any of the n. place is the lock's number among them, from 0.
func (c *Contender) Apart(place, n int) {
	c.gap.apart = uint8(aparts * place / n)
}

// Depart has the process give up its place. It returns the nodes that may have its ticket: a node
// that was down for a while has kept an earlier one.
func (c *Contender) Depart() (placed quorum.Set) {
	placed = c.placed
	c.seat, c.placed, c.first, c.Others, c.again, c.rung = none, 0, false, 0, false, false
	c.Gates, c.claims, c.Clears = false, false, false
	return placed
}

// MayAttempt reports whether the process is the one to ask for the lock after a release by a holder of its own.
func (c *Contender) MayAttempt() bool {
	return c.seat != none && c.first && !c.rung && !c.again
}

// Nodes is the nodes whose pushes it awaits.
func (c *Contender) Nodes() (nodes quorum.Set) {
	if c.seat != none {
		nodes.Add(int(c.seat))
	}
	if c.watched != none {
		nodes.Add(int(c.watched))
	}
	return nodes
}
