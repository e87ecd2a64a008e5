package contention

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// A gap is a time in which a process leaves the lock free, after it has wanted the lock for long without a break. That
// is measured at the end of each of its locks (waiting/turns.go). Clients in no line and no queue get a lock only by
// asking at a free moment: other libraries, clients with other names for the nodes or too few permissions, sets of
// keys, TryAcquire. Hand-over leaves no such moment. In a queue the gap is a place before all others, in no queue a
// pause.
const (
	// GapLength exceeds the longest default pause between two tries, of this library and of others
	// (250 ms): a polling client asks at least once in a gap.
	GapLength = 255 * time.Millisecond

	// GapInterval and GapLength together are the longest wait of a polling client, beside short holds. Gaps cost a lock
	// in constant demand 8.8 % of its time.
	GapInterval = 2650 * time.Millisecond

	// pollTurn is the turn of a polling process beside rivals that poll too. The process remembers rivals for
	// rivalsLast, and leaves them the lock for maxAway at most.
	pollTurn   = 50 * time.Millisecond
	rivalsLast = 10 * time.Second
	maxAway    = 700 * time.Millisecond
)

// GapAfter is the time for which a process wants a lock without a break before a gap is due. hold is the time a holder
// keeps the lock. At most every second holder is followed by a gap. Sharers have to leave the lock first, so their gap
// begins earlier by that time.
func GapAfter(hold time.Duration, shared bool) time.Duration {
	if shared {
		return max(GapInterval-hold, 2*hold-GapLength)
	}
	return max(GapInterval, 2*hold)
}

// gapState is the state of a gap.
//
//	closed ── Due ──► due ──► closed: the queue was asked for one, or it is open until an instant
//	                   └────► clearing, among sharers of the lock ── none does ──► clear ──► closed
type gapState uint8

const (
	closed   gapState = iota
	due               // before the next attempt
	clearing          // the gap is the process's own, and lasts until no others share the lock
	clear             // no others share it
)

// gap decides when a lock is left free.
type gap struct {
	state gapState
	until clock.Instant // the end of the present one
	next  clock.Instant // the earliest start of the next one
	hold  time.Duration // how long holders have kept the lock of late

	// For a polling process. All pollers leave gaps, each after a short turn.
	polls  bool
	had    bool          // it has had the lock since its last gap
	rivals clock.Instant // others are known to want the lock until then
	turn   time.Duration // doubled after each turn without rivals
	waited time.Duration // for its turn, on average
}

// Due reports that a gap is due, with holders keeping the lock for hold. An open gap counts as this one: a polling
// process may have begun it for its rivals.
func (c *Contender) Due(now clock.Instant, hold time.Duration) {
	c.gap.hold = hold
	if c.gap.state == closed && !c.gap.isOpen(now) {
		c.gap.state = due
	}
}

// LeavesFree reports whether the lock is left free for clients outside the queue, now or from its next release on.
func (c *Contender) LeavesFree(now clock.Instant) bool { return c.gap.isOpen(now) || c.gap.isDue(now) }

// FreeUntil is the end of the gap for clients outside the queue, or 0 without one.
func (c *Contender) FreeUntil(now clock.Instant) clock.Instant {
	if c.gap.isOpen(now) {
		return c.gap.until
	}
	return 0
}

// granted notes a grant. It begins a turn of a polling process.
func (g *gap) granted(now clock.Instant) {
	if !g.polls || g.had {
		return
	}
	g.had = true
	g.waited = (g.waited + min(now.Sub(g.until), maxAway)) / 2
	g.turn = min(max(2*g.turn, pollTurn), GapInterval)
	if now < g.rivals {
		g.turn = pollTurn
	}
	g.next = now.Add(g.turn)
}

// rival notes another client that wants the lock. Unless the process polls, that may be one of its own holders.
func (g *gap) rival(now clock.Instant) {
	if g.polls {
		g.rivals = now.Add(rivalsLast)
		return
	}
	g.rivals = max(g.rivals, now.Add(GapLength+GapInterval))
}

// isDue reports whether a gap comes before the next attempt.
func (g *gap) isDue(now clock.Instant) bool {
	return now >= g.next && (g.state == due || g.polls && g.had && now < g.rivals)
}

// isOpen reports whether the lock is left free now.
func (g *gap) isOpen(now clock.Instant) bool { return now < g.until }

// isClearing reports whether the gap is the process's own, among sharers of the lock.
func (g *gap) isClearing() bool { return g.state >= clearing }

// long is the length of a gap of a process in no queue. It grows with the number of rivals, so all have a turn.
func (g *gap) long(now clock.Instant) time.Duration {
	if g.polls && now < g.rivals {
		return max(GapLength, min(3*g.waited, maxAway))
	}
	return GapLength
}

// claim asks the queue for a gap, and returns the time for which the queue leaves no other. If another process has left
// one lately, the next is due after the same time.
func (g *gap) claim(shared bool) (rarely time.Duration) {
	g.state = closed
	return GapAfter(g.hold, shared) + GapLength/2
}

// begin begins a gap, or notes one begun by another process.
func (g *gap) begin(now clock.Instant, long time.Duration) {
	g.state, g.until, g.next, g.had = closed, now.Add(long), 0, false
}

// clear begins a gap among sharers. Only a gate makes the lock free for others then. It is up until the lock has been
// free for GapLength, and no longer than the present holders should take.
func (g *gap) clear(now clock.Instant) {
	g.begin(now, 2*GapLength+g.hold*5/4)
	g.state = clearing
}

// cleared notes that the last sharer has left.
func (g *gap) cleared(now clock.Instant) {
	g.state, g.until = clear, min(g.until, now.Add(GapLength))
}

// noClearing ends a gap among sharers.
func (g *gap) noClearing() {
	if g.isClearing() {
		g.state, g.until = closed, 0
	}
}
