package contention

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// A process leaves a lock free for a while, a gap, once it has wanted it for long without a break: that is measured where
// its locks end (waiting/turns.go). Clients in no line and no queue (other libraries, clients with other names for the
// nodes or too few permissions, sets of keys, TryAcquire) get a lock only by asking at a free moment. Hand-over leaves
// no such moment. In a queue the gap is a place before all others, in no queue a pause.
const (
	// GapLength exceeds the longest default pause between two tries, of this library and of others
	// (250 ms): a polling client asks at least once in a gap.
	GapLength = 255 * time.Millisecond

	// GapInterval and GapLength together are the longest wait of a polling client, beside short holds. Gaps cost a lock
	// in constant demand 8.8 % of its time.
	GapInterval = 2650 * time.Millisecond

	// pollTurn is the turn of a polling process beside rivals that poll too. It remembers rivals
	// for rivalsLast, and leaves them the lock for maxAway at most.
	pollTurn   = 50 * time.Millisecond
	rivalsLast = 10 * time.Second
	maxAway    = 700 * time.Millisecond
)

// GapAfter is for how long a process wants a lock without a break until a gap is due, where holders have it for so long
// each. No more than every second holder is followed by one. Sharers have to leave the lock first: their gap
// begins earlier by that.
func GapAfter(hold time.Duration, shared bool) time.Duration {
	if shared {
		return max(GapInterval-hold, 2*hold-GapLength)
	}
	return max(GapInterval, 2*hold)
}

// gapState is whether the lock is left free.
//
//	closed ── Due ──► due ──► closed: the queue was asked for one, or it is open until an instant
//	                   └────► clearing, among sharers of the lock ── none does ──► clear ──► closed
type gapState uint8

const (
	closed   gapState = iota
	due               // before the next attempt
	clearing          // the gap is the process's own, and waits for others to share the lock no more
	clear             // none does
)

// gap is when a lock is left free.
type gap struct {
	state gapState
	until clock.Instant // the end of the present one
	next  clock.Instant // the next one begins no earlier
	hold  time.Duration // how long holders have the lock, of late

	// Of a polling process. All that poll leave gaps, each after a short turn.
	polls  bool
	had    bool          // it has had the lock since its last gap
	rivals clock.Instant // until then others are known to want the lock
	turn   time.Duration // doubled after each turn without rivals
	waited time.Duration // for its turn, on average
}

// Due reports that a gap is due, where holders have the lock for so long. One that is open is that gap: a process that
// polls may have begun it for its rivals.
func (c *Contender) Due(now clock.Instant, hold time.Duration) {
	c.gap.hold = hold
	if c.gap.state == closed && !c.gap.isOpen(now) {
		c.gap.state = due
	}
}

// LeavesFree reports whether the lock is left free for clients outside the queue, now or from its next release on.
func (c *Contender) LeavesFree(now clock.Instant) bool { return c.gap.isOpen(now) || c.gap.isDue(now) }

// FreeUntil is until when the lock is left free for clients outside the queue, or 0: it is not.
func (c *Contender) FreeUntil(now clock.Instant) clock.Instant {
	if c.gap.isOpen(now) {
		return c.gap.until
	}
	return 0
}

// granted notes a grant: of a polling process a turn begins.
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

// rival notes that another wants the lock. Of a process that does not poll it may be a holder of its own.
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

// long is the length of a gap of a process in no queue: the more rivals, the longer, so all have a turn.
func (g *gap) long(now clock.Instant) time.Duration {
	if g.polls && now < g.rivals {
		return max(GapLength, min(3*g.waited, maxAway))
	}
	return GapLength
}

// claim asks the queue for a gap, and returns for how long it leaves no other. Where another process has left one
// lately, the next is due after as long.
func (g *gap) claim(shared bool) (rarely time.Duration) {
	g.state = closed
	return GapAfter(g.hold, shared) + GapLength/2
}

// begin begins a gap, or notes that of another process.
func (g *gap) begin(now clock.Instant, long time.Duration) {
	g.state, g.until, g.next, g.had = closed, now.Add(long), 0, false
}

// clear begins a gap of sharers. Only a gate makes that free for others: it is up until the lock has been
// free for GapLength, and no longer than the present holders should take.
func (g *gap) clear(now clock.Instant) {
	g.begin(now, 2*GapLength+g.hold*5/4)
	g.state = clearing
}

// cleared notes that none shares the lock any more.
func (g *gap) cleared(now clock.Instant) {
	g.state, g.until = clear, min(g.until, now.Add(GapLength))
}

// noClearing ends what sharers alone have.
func (g *gap) noClearing() {
	if g.isClearing() {
		g.state, g.until = closed, 0
	}
}
