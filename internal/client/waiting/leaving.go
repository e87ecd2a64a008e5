package waiting

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/wire/command"
)

// A place in the queue of a node is owed back to it until the node has answered, or its ticket has ended: others wait
// for this process meanwhile. If a node refuses or misses the return, the sentry asks it again after a growing pause.

// stay is a place that this process has left, and the node has not taken back.
type stay struct {
	key   string
	node  int
	since clock.Instant // when it was left first; 0: now
	times int           // it was asked
	due   clock.Instant // when it is asked again
}

// leavePause is the pause before the first repeat. Each other pause is twice as long as the one before.
const leavePause = 250 * time.Millisecond

// pushLeave queues the question to a node to take a place back. unlock sends it. A shard may be locked: so a later
// question of its desk, to enter, is behind it.
func (p *tracking) pushLeave(x stay) {
	e, q := p.lines.cfg.Engine, p.lines.cfg.Engine.Query(x.node, p.lines.cfg.QueryTimeout)
	q.Buf, q.Replies = command.AppendQueue(q.Buf, x.key, p.id, false, command.Leave)
	q.Ring = func() { // once it is answered
		if err := q.Err; err != engine.ErrClosed && (err != nil || q.Said[0].Err != nil) {
			p.lines.sentry.stays(x)
		}
	}
	e.AskSoon(q)
	q.Free()
}

// stays notes a place that a node has not taken back. The driver lock is held.
func (s *sentry) stays(x stay) {
	now := s.lines.cfg.Clock.Now()
	if x.times == 0 {
		x.since = now
	}
	x.due = now.Add(leavePause << x.times)
	x.times++
	if x.due.Sub(x.since) > command.AloneTicket {
		return // its ticket has ended
	}
	s.mu.Lock()
	if len(s.owed) < maxOwed { // the tickets of others end
		s.owed = append(s.owed, x)
	}
	s.mu.Unlock()
	s.lines.cfg.Ring()
}

// leaveAgain asks again for the places to be taken back that are due, and returns when the next is. A place that is in
// use again, or is just being entered, is none: it is left with its desk.
func (s *sentry) leaveAgain(now clock.Instant) (next clock.Instant) {
	next = clock.Never
	s.mu.Lock()
	owed := s.owed
	s.owed = nil
	s.mu.Unlock()
	var later []stay
	for _, x := range owed {
		if now < x.due {
			next, later = min(next, x.due), append(later, x)
			continue
		}
		sh := s.lines.lock(x.key)
		if d := sh.desks[x.key]; d == nil || d.asked == nil && !d.Nodes().Has(x.node) {
			s.lines.tracking.pushLeave(x)
		}
		sh.mu.Unlock()
	}
	s.mu.Lock()
	s.owed = append(s.owed, later...)
	s.mu.Unlock()
	if len(owed) > len(later) {
		s.lines.cfg.Engine.SendQueries()
	}
	return next
}
