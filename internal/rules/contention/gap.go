package contention

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
)

// A process leaves a lock free for a while, a gap, once it has had it for long without a break.
// Clients in no line and no queue (other libraries, clients with other names for the nodes or too
// few permissions, sets of keys, TryAcquire) get a lock only by asking at a free moment. Hand-over
// leaves no such moment. In a queue the gap is a place before all others, in no queue a pause.
const (
	// GapLength exceeds the longest default pause between two tries, of this library and of others
	// (250 ms): a polling client asks at least once in a gap.
	GapLength = 255 * time.Millisecond

	// GapInterval and GapLength together are the longest wait of a polling client. Gaps cost a lock
	// in constant demand 8.8 % of its time.
	GapInterval = 2650 * time.Millisecond

	// gapGrants is the least number of grants between two gaps: where each holder keeps the lock
	// for long, gaps stay a small part of the time.
	gapGrants = 8

	// pollTurn is the turn of a polling process beside rivals that poll too. It remembers rivals
	// for rivalsLast, and leaves them the lock for maxAway at most.
	pollTurn   = 50 * time.Millisecond
	rivalsLast = 10 * time.Second
	maxAway    = 700 * time.Millisecond
)

// gap decides when a lock is left free. The zero value begins to count with the first grant.
type gap struct {
	idle   clock.Instant // since when the lock is free and no caller waits; 0: not free
	next   clock.Instant // the next gap begins no earlier
	open   clock.Instant // end of the present gap
	grants int32         // in a row since the last gap, hand-overs without a round trip included
	apart  uint8         // how much earlier the first gap comes, in parts of 1/aparts of the time between two
	later  bool          // the first gap is over

	// Of a polling process. All that poll leave gaps, each after a short turn.
	polls  bool
	rivals clock.Instant // until then others are known to want the lock
	turn   time.Duration // doubled after each turn without rivals
	waited time.Duration // for its turn, on average
}

const aparts = 64

func (g *gap) granted(now clock.Instant) {
	if g.idle != 0 && now.Sub(g.idle) >= GapLength {
		g.grants, g.later = 0, false // polling clients have had their turn
	}
	g.idle = 0
	g.grants++
	if g.grants > 1 {
		return
	}
	g.next = now.Add(GapInterval)
	if !g.later {
		g.next = g.next.Add(-(GapInterval + GapLength) / aparts * time.Duration(g.apart))
	}
	if g.polls {
		g.waited = (g.waited + min(now.Sub(g.open), maxAway)) / 2
		g.turn = min(max(2*g.turn, pollTurn), GapInterval)
		if now < g.rivals {
			g.turn = pollTurn
		}
		g.next = now.Add(g.turn)
	}
}

// isDue reports whether a gap comes before the next attempt.
func (g *gap) isDue(now clock.Instant) bool {
	return now >= g.next && (g.grants >= gapGrants || g.grants > 0 && g.polls && now < g.rivals)
}

// isOpen reports whether the lock is left free now.
func (g *gap) isOpen(now clock.Instant) bool { return now < g.open }

// long is the length of a gap of a process in no queue: the more rivals, the longer, so all have a turn.
func (g *gap) long(now clock.Instant) time.Duration {
	if g.polls && now < g.rivals {
		return max(GapLength, min(3*g.waited, maxAway))
	}
	return GapLength
}

func (g *gap) begin(now clock.Instant, long time.Duration) {
	*g = gap{open: now.Add(long), apart: g.apart, later: true, polls: g.polls, rivals: g.rivals, turn: g.turn, waited: g.waited}
}
