package contention

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/quorum"
)

// Contender decides what a process does, for all its waiters together, to get a lock wanted by others too.
//
// Processes that want the same lock queue up on one node: the first usable one in the lock's own order. Only the first
// in the queue asks the nodes for the lock. Before that it tracks the key on one node, and waits for this node's push,
// or for the key's expiry there. So a released lock is asked for once, by one process, at once.
//
// A contender has four parts, each with its state: its place in the queue, its knowledge of the key, its attempts, and
// the gap, in which the lock is left free (gap.go).
type Contender struct {
	hash   uint64 // of the key: it gives the lock's order of the nodes
	shared bool   // its present callers share the lock, and its place is among sharers

	// Where it stands.
	standing standing
	seat     int8          // the node of the queue, or none
	others   uint8         // other processes known to want the lock too; 2 means 2 or more
	placed   quorum.Set    // nodes that may have a ticket of the process, lost places included
	enters   clock.Instant // when it enters again: to keep its place, or because the first may have lost its own by then

	// The key, and the question under way.
	key      keyState
	watched  int8          // the tracking node, or none
	expires  clock.Instant // when it ends there, or is looked at again
	looks    int32         // at a key that ends in steps, since the last attempt
	look     clock.Instant // not before this
	question int8          // the node to be entered or watched, or none
	early    pushes        // pushes from it since the question, perhaps before its answer was known

	// Its attempts.
	vain     int32         // failed in a row, each right after the key was free
	overdue  bool          // the present attempt, or look, is made at the deadline
	vacant   uint8         // looks in a row that found the lock free
	pause    clock.Instant // no attempt before this
	poll     clock.Instant // nor before this, where no node can push
	deadline clock.Instant // an attempt or a look then, despite all other advice
	denied   quorum.Set    // nodes that denied the last one
	outvoted quorum.Set    // nodes outvoted by the last grant: their key belongs to no holder
	failed   failing       // nodes not asked for a while

	gap gap
}

const none = -1

// standing is the place of a process in the queue.
//
//	        Entered                Rung, Entered              sharers are in the way
//	out ────────────────► behind ────────────────► first ───────────────────────────► gating
//	 ▲  ▲                   │                        │ Won beside others, another kind  │
//	 │  └─ Lost, Parted ────┴────────────────────────┼──────────────────────────────────┤
//	 │                    Entered                    ▼                                  │
//	 │                behind, first ◄───────────── last ◄────────────────────────────────┘
//	 └─ denied ─ polling ◄─ denied by no holder, from any
type standing uint8

const (
	out     standing = iota // in no queue
	polling                 // no holder has denied it: it polls, in no queue
	last                    // it has had its turn, and enters at the end
	behind                  // others are before it
	first                   // it has its turn
	gating                  // likewise, and nodes are to admit no more sharers
)

// keyState is the process's knowledge of the key.
type keyState uint8

const (
	unknown keyState = iota
	tracked          // a node pushes its next change: then it is free
	stepped          // likewise, but it ends in steps: the process looks at each change before it attempts
	free             // perhaps
)

// pushes is a set of pushes from a node.
type pushes uint8

const (
	ofKey    pushes = 1 << iota
	ofTicket        // of the process
)

// Init begins a contender for a lock.
func (c *Contender) Init(key string) {
	*c = Contender{hash: Hash(key), seat: none, watched: none, question: none, key: free}
}

// Action is the next action of a contender.
type Action uint8

const (
	Pause   Action = iota // until Step.Until, or the next report
	Attempt               // to get the lock from all nodes
	Enter                 // the queue of Step.Node, in Step.Way
	Leave                 // the queues of Step.Leave, and call Next at once
	Watch                 // the key on Step.Node
	Look                  // at all nodes, for a free lock: an attempt that sets nothing
)

// Way is the way into a queue.
type Way uint8

const (
	InPlace   Way = iota // at the end, or where it is already
	AtEnd                // at the end
	BehindGap            // in place, with a gap before all others, unless the queue has left one lately
)

// Step is an action with its details.
type Step struct {
	Action Action
	Node   int
	Way    Way
	Shared bool          // it enters among sharers of the lock
	Rarely time.Duration // BehindGap: the queue leaves no other gap for this time
	Tracks bool          // Enter: the node is to track the key too, before a Watch is due
	Gaps   bool          // Watch: a gap is due, unless the queue has left one lately
	Leave  quorum.Set
	Until  clock.Instant // of Pause
}

// Surroundings is the input of a decision.
type Surroundings struct {
	Now    clock.Instant
	Names  []uint64      // a hash of each node's name
	Usable quorum.Set    // nodes that are up and can push
	Slow   quorum.Set    // slower than the others
	Held   clock.Instant // known end of a lock held in this process
	Pause  time.Duration // between attempts, where there are no pushes
	Jitter time.Duration // a small span, added to instants known to several processes
	Ask    time.Duration // the longest time from one attempt to the next
	Shared bool          // the first caller in line wants to share the lock
	Set    bool          // it wants other keys too
}

// Next decides what to do.
func (c *Contender) Next(s *Surroundings) Step {
	c.overdue = false
	if c.shared != s.Shared { // the other kind has its turn after the processes already in the queue
		c.shared = s.Shared
		if c.standing != polling {
			c.standing = last
		}
		c.gap.noClearing()
		if c.key != free {
			c.forget()
		}
	}
	step := c.advised(s)
	switch {
	case step.Action == Attempt && c.gap.isDue(s.Now):
		step = c.leaveFree(s)
	case step.Action == Pause && s.Set && c.standing == behind: // it asks in its turns alone
		c.deadline = s.Now.Add(s.Ask)
	case step.Action == Pause && s.Now >= c.deadline && !c.gap.isOpen(s.Now):
		step, c.overdue = Step{Action: Attempt}, true
		if c.mayLook() {
			step.Action = Look
		}
	}
	if step.Action == Pause && !c.gap.isOpen(s.Now) {
		step.Until = min(step.Until, c.deadline)
	}
	c.question, c.early = none, 0
	switch step.Action {
	case Enter:
		c.placed.Add(step.Node)
		step.Shared = c.shared
		fallthrough
	case Watch:
		c.question = int8(step.Node)
	}
	return step
}

// mayLook reports whether a process looks at its deadline before it asks against all advice. The lock is free for a
// moment between two holders. An attempt at that moment takes the turn of the first in the queue. The attempt of the
// first may then be denied by the queue's node, if it comes before the release there, and the next process finds no key
// on that node. So a process in a queue looks first. Sharers do not wait for a free moment.
func (c *Contender) mayLook() bool {
	return c.seat != none && c.standing >= behind && !c.shared && c.vacant < mostVacant
}

// Looked reports the result of a look at the nodes: the lock is free, or has a holder. If it is free, a process in turn
// asks for it. A process behind others looks again before long, since they are about to take it. If the lock has a
// holder, the process in turn has the key tracked anew: the tracking node may have lost the key without a push, and
// would then push no release.
func (c *Contender) Looked(s *Surroundings, isFree bool) {
	c.overdue = false
	if !isFree {
		c.vacant, c.deadline = 0, s.Now.Add(s.Ask)
		c.gap.rival(s.Now)
		if c.key != free {
			c.forget()
		}
		return
	}
	c.deadline = s.Now.Add(lookAgain)
	c.vacant++
	if c.hasTurn() {
		c.freed()
	}
}

const (
	// mostVacant is the number of looks in a row that must find the lock free before a process asks against all advice.
	mostVacant = 2

	// lookAgain is the time from one such look to the next, and to the attempt. All of them together outlast a gap and
	// the time the first in the queue then needs to take the lock, with nodes 50 ms away.
	lookAgain = 200 * time.Millisecond
)

// leaveFree begins a gap. In a queue a gap is a place before all others, and one serves all processes.
func (c *Contender) leaveFree(s *Surroundings) Step {
	if c.seat != none {
		return Step{Action: Enter, Node: int(c.seat), Way: BehindGap, Rarely: c.gap.claim(c.shared)}
	}
	c.gap.begin(s.Now, c.gap.long(s.Now))
	return Step{Until: c.gap.until}
}

// advised is the advice of queue, watch and own belief.
func (c *Contender) advised(s *Surroundings) Step {
	c.gap.polls = s.Usable == 0
	c.Lost(^s.Usable)
	switch {
	case c.gap.polls:
		return c.polls(s)
	case c.standing == polling && c.seat != none:
		return Step{Action: Leave, Leave: c.Depart()}
	case c.standing == polling:
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
	if c.seat != none && int(c.seat) != home && (c.standing == last || s.Slow.Has(int(c.seat))) {
		return Step{Action: Leave, Leave: c.Depart()}
	}
	if c.seat == none || c.standing == last || s.Now >= c.enters {
		enter := Step{Action: Enter, Node: home}
		if c.standing == last {
			enter.Way = AtEnd
		}
		soon := c.others == 1 // it will be the first, or the next
		if c.seat != none {
			enter.Node, soon = int(c.seat), c.key == tracked
		}
		enter.Tracks = soon && !c.shared && s.Held <= s.Now && c.watch(&well).Node == enter.Node
		return enter
	}
	return c.inQueue(&well)
}

// inQueue is the advice for a process in a queue. Failing nodes are not usable.
func (c *Contender) inQueue(s *Surroundings) Step {
	if c.key == stepped && s.Now >= c.expires {
		c.forget()
	}
	switch {
	case c.gap.isClearing():
		return c.clearing(s)
	case c.standing == behind:
		return Step{Until: c.enters}
	case s.Held > s.Now:
		return Step{Until: min(s.Held.Add(s.Jitter), c.enters)}
	case s.Now < c.pause:
		return Step{Until: min(c.pause, c.enters)}
	case c.key == free || c.key == tracked && s.Now >= c.expires:
		return Step{Action: Attempt}
	case c.key == unknown && s.Now < c.look:
		return Step{Until: min(c.look, c.enters)}
	case c.key == unknown:
		return c.watch(s)
	}
	return Step{Until: min(c.expires, c.enters)}
}

// polls is the advice where no node can push: attempts with pauses between them.
func (c *Contender) polls(s *Surroundings) Step {
	switch {
	case c.gap.isOpen(s.Now):
		return Step{Until: c.gap.until}
	case s.Held > s.Now:
		return Step{Until: s.Held.Add(s.Jitter)}
	case s.Now < c.poll:
		return Step{Until: c.poll}
	}
	return Step{Action: Attempt}
}

// Home is the queue's node, for a process in no queue. ok is false while no node can be used.
func (c *Contender) Home(s *Surroundings) (node int, ok bool) {
	out, _ := c.failed.at(s.Now)
	well := *s
	well.Usable &^= out
	if well.Usable == 0 {
		return none, false
	}
	return c.home(&well, quorum.Everything), true
}

// home is the first usable node in the lock's order, among the fast ones and the preferred ones if there are any.
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

// Denied reports a failed attempt: the denied nodes have the key already. The set is empty if the nodes were out of
// reach.
func (c *Contender) Denied(s *Surroundings, denied quorum.Set) {
	c.denied, c.poll, c.deadline, c.vacant = denied, s.Now.Add(s.Pause), s.Now.Add(s.Ask), 0
	switch {
	case denied == 0:
		c.standing, c.pause = polling, c.poll
		c.freed()
	case c.overdue: // nothing is new
		if c.watched != none && !denied.Has(int(c.watched)) {
			c.forget() // this attempt has set and deleted the key there, and so ended its tracking
		}
	default:
		c.forget()
		c.looks = 0
		c.vain++
		if c.vain > freeAttempts {
			c.pause = s.Now.Add(backoff(s, c.vain-freeAttempts))
		}
	}
	if denied != 0 {
		if c.standing == polling {
			c.standing = out
		}
		c.gap.rival(s.Now)
	}
	c.overdue = false
}

// Polled reports that the nodes were just asked, for a caller of several keys.
func (c *Contender) Polled(s *Surroundings) {
	c.poll = s.Now.Add(s.Pause)
	c.deadline = max(c.deadline, c.poll)
}

// Queues makes the process wait for its turn in the queue before it asks the nodes, but no longer than until then.
func (c *Contender) Queues(until clock.Instant) { c.deadline = until }

// Keep reports an attempt that failed although no node denied it. A process in turn keeps its turn until the given
// instant, or until the lock is freed, and a polling process goes on. The result is false if the process has asked
// before its turn.
func (c *Contender) Keep(s *Surroundings, until clock.Instant) bool {
	c.poll, c.deadline, c.overdue = s.Now.Add(s.Pause), s.Now.Add(s.Ask), false
	if c.hasTurn() {
		c.pause = until
	}
	return c.hasTurn() || c.seat == none
}

// Vain is the number of failed tries in a row, each made right after the key was free.
func (c *Contender) Vain() int { return int(c.vain) }

// backoff is the pause after n vain tries in a row, from 1.
func backoff(s *Surroundings, n int32) time.Duration {
	return min(s.Pause, s.Jitter+time.Millisecond<<min(n, 16))
}

// freeAttempts is the number of failed attempts in a row without a pause between them. Either another holder's key has
// come between, or pushes are forged.
const freeAttempts = 2

// Won reports that the process has the lock, denied by these nodes alone. The node parted, if not negative, has let go
// of its place. Otherwise the process enters the queue at the end if others want the lock too. If no others do, it
// stays the first: a later process rings it. It gives up a place at a node other than the lock's home, though: the home
// was unusable for a while, and the others meet there.
func (c *Contender) Won(s *Surroundings, denied quorum.Set, parted int) {
	switch {
	case parted >= 0:
		c.Parted(parted)
	case !c.hasTurn() || c.others > 0 || int(c.seat) != c.home(s, quorum.Everything):
		c.standing = last
	case c.standing == gating:
		c.standing = first
	}
	c.forget()
	if c.shared { // the next may share it
		c.key = free
	}
	c.denied, c.vain, c.pause, c.poll, c.overdue, c.looks, c.vacant = 0, 0, 0, 0, false, 0, 0
	c.outvoted, c.deadline = denied, s.Now.Add(s.Ask)
	c.gap.granted(s.Now)
}

// Parting names the node that lets go of the process's place if its coming attempt wins. That requires that no caller
// of the process waits behind the asking one. Sharers stay in turn together. An attempt at the deadline seldom wins.
func (c *Contender) Parting(now clock.Instant) (node int, parts bool) {
	return int(c.seat), c.seat != none && c.standing != last && !c.shared && !c.overdue && !c.gap.isDue(now) && !c.gap.isClearing()
}

// Parted reports a node that has let go of the process's place.
func (c *Contender) Parted(node int) {
	c.placed.Remove(node)
	if int(c.seat) == node {
		c.leave()
	}
}

// Freed reports a release of the lock by a holder in this process.
func (c *Contender) Freed() {
	c.freed()
	c.overdue, c.pause, c.poll = false, 0, 0
}

// freed notes that the key may be free.
func (c *Contender) freed() { c.key, c.watched = free, none }

// forget notes that nothing is known of the key.
func (c *Contender) forget() { c.key, c.watched = unknown, none }

// Hurry makes the process ask the nodes at its next turn, and reports whether it will: not during a gap.
func (c *Contender) Hurry(now clock.Instant) bool {
	c.deadline = 0
	return !c.gap.isOpen(now)
}
