package contention

import "time"

// Clients that stand in no line and no queue (other libraries, clients that name the nodes
// otherwise or lack permissions, sets of keys, TryAcquire) get a lock only by asking at a
// moment at which it is free. Hand-over leaves no such moment. So a process leaves a lock
// that it has had without a break free for a while: a gap.
const (
	// GapLength exceeds the longest pause between two tries by default, of this library and
	// of others (250 ms): a client that polls asks once in a gap at least.
	GapLength = 255 * time.Millisecond

	// GapInterval and GapLength together are the longest wait of a client that polls. A gap costs
	// a lock that is wanted without a break 8.8 % of its time.
	GapInterval = 2650 * time.Millisecond

	// gapGrants is how many grants come between two gaps at least, so that a gap is small
	// beside locks that are held for long.
	gapGrants = 8

	// pollTurn is how long a process has a lock that others poll for as it does. rivalsLast is
	// how long it remembers them, and maxAway how long it leaves them the lock then at most.
	pollTurn   = 50 * time.Millisecond
	rivalsLast = 10 * time.Second
	maxAway    = 700 * time.Millisecond
)

// gap is when a lock is left free. The zero value begins to count with the first grant.
type gap struct {
	grants int           // without a break since the last gap, those without a round trip too
	idle   time.Duration // since when the lock is free and no caller waits; 0: it is not
	next   time.Duration // the next is not before
	open   time.Duration // the present one lasts until then
	apart  time.Duration // the first one comes so much earlier
	later  bool          // it has been

	// Of a process that polls. All that poll leave gaps, each after a short turn.
	polls  bool
	rivals time.Duration // until when others are known to want the lock
	turn   time.Duration // twice as long after each that has met none
	waited time.Duration // for its turn, on average
}

// granted counts a grant.
func (g *gap) granted(now time.Duration) {
	if g.idle != 0 && now-g.idle >= GapLength {
		g.grants, g.later = 0, false // clients that poll have had their turn
	}
	g.idle = 0
	if g.grants++; g.grants > 1 {
		return
	}
	if g.next = now + GapInterval; !g.later {
		g.next -= g.apart
	}
	if g.polls {
		g.waited = (g.waited + min(now-g.open, maxAway)) / 2
		if g.turn = min(max(2*g.turn, pollTurn), GapInterval); now < g.rivals {
			g.turn = pollTurn
		}
		g.next = now + g.turn
	}
}

// isDue reports whether the lock is to be left free before it is asked for again.
func (g *gap) isDue(now time.Duration) bool {
	return now >= g.next && (g.grants >= gapGrants || g.grants > 0 && g.polls && now < g.rivals)
}

// polled notes whether the process polls.
func (g *gap) polled(now time.Duration, is bool) {
	if is && !g.polls {
		g.next = min(g.next, now+pollTurn)
	}
	g.polls = is
}

// refused notes that another process has the lock.
func (g *gap) refused(now time.Duration) {
	g.rivals = max(g.rivals, now+GapLength+GapInterval)
	if g.polls { // else it may be a holder of its own
		g.rivals = now + rivalsLast
	}
}

// isOpen reports whether the lock is left free now.
func (g *gap) isOpen(now time.Duration) bool { return now < g.open }

// begin begins a gap.
func (g *gap) begin(now time.Duration) {
	long := GapLength
	if g.polls && now < g.rivals { // so that all have a turn: longer, the more there are
		long = max(long, min(3*g.waited, maxAway))
	}
	*g = gap{open: now + long, apart: g.apart, later: true, polls: g.polls, rivals: g.rivals, turn: g.turn, waited: g.waited}
}

// postpone has the next gap come after left: another process of the queue has left one.
func (g *gap) postpone(now, left time.Duration) { g.next = now + left }
