package waiting

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// sentry judges the nodes while there are desks, by one periodic question to each. An answer is a sign of life, and its
// round trips show a node slower than the others. In a client with more desks than may ask the quorum each second, the
// question is whether the keys of desks are still there. It goes to a node that wakes none of a key's callers, with many
// keys at once, at little cost to the node. A missing key may be free: its callers ask the quorum. A question with a
// missing key is divided, until the key is known.
type sentry struct {
	lines    *Lines
	lost     quorum.SharedSet // nodes with pushes perhaps lost
	flushed  quorum.SharedSet // nodes that have forgotten what they track; their desks are not notified yet
	calm     clock.Instant    // when they are
	regained atomic.Bool      // a quorum of nodes has its vote again: waiting callers ask at once
	listens  bool             // pushes are waited for
	visited  clock.Instant    // when it last went to all desks
	due      clock.Instant    // when it asks next
	nodes    quorum.Set       // from which desks await pushes
	asked    []question       // without an answer yet
	turn     int              // the nodes take turns in being asked for keys
	trips    trips
	late     quorum.Set // nodes perhaps slow, all at first: they are asked again soon
}

// question is one for a node, about the keys of desks, or none.
type question struct {
	*engine.Query
	keys  []string
	timed bool // it is the first of a turn to its node: those sent with it share a delay by chance
}

// trips is the last round trips of each node, the latest first, or 0. Processes queue up on one node, and each turn
// takes some of its round trips, so it must not be slower than the others.
type trips [quorum.MaxNodes][3]time.Duration

const (
	// firstTrips is between the questions to the nodes until the slow ones are known.
	firstTrips = 20 * time.Millisecond

	// leastPing is between the later questions to a node at least, however short the timeout: by default it is as long.
	leastPing = 100 * time.Millisecond

	// visitEvery is how often the sentry goes to all desks, and asks silent nodes.
	visitEvery = 500 * time.Millisecond

	// flushCost is the time for each desk until flushes count again: a flush costs it five commands of a node.
	flushCost = 10 * time.Millisecond

	// surveyKeys bounds the keys of a question.
	surveyKeys = 256

	// A node is slow if it takes slowTimes as long as the median of the nodes, and slowBy more: on a busy machine any
	// round trip may take some milliseconds.
	slowTimes = 4
	slowBy    = 3 * time.Millisecond
)

// note notes what is wrong with a node: pushes of it may be lost, or it has forgotten what it tracks, since others have
// deleted all keys of some database. If they do so all the time, the desks are not at once where they were: the questions
// of each second find the free locks.
func (s *sentry) note(what *quorum.SharedSet, node int) {
	if what.Add(node) && s.lines.HasDesks() {
		s.lines.cfg.Ring()
	}
}

// Turn has the desks go on that are due, looks after the nodes, and returns the pause to the next turn. It does not
// wait for nodes: their answers ring.
//
// Without desks, and places to be taken back, it goes through no shards: locks that are kept alive ring too. A new desk is
// counted before it is in the schedule, and next is read after that. So it is seen here, or rings.
func (l *Lines) Turn() time.Duration {
	now := l.cfg.Clock.Now()
	if l.known.Load()+l.owed.Load() == 0 {
		l.next.Store(int64(clock.Never))
		if l.known.Load()+l.owed.Load() == 0 {
			return l.tend(now).Sub(now)
		}
	}
	l.next.Store(0) // what changes meanwhile is seen below
	next := clock.Never
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		if len(s.owed) > 0 {
			l.leaveAgain(s, now)
		}
		for s.next() <= now {
			d, _ := s.due.First()
			d.advance()
		}
		next = min(next, s.next())
		l.unlock(s)
	}
	next = min(next, l.tend(now))
	l.next.Store(int64(next))
	for i := range l.shards { // what has changed since, before others could see it
		s := &l.shards[i]
		s.mu.Lock()
		next = min(next, s.next())
		s.mu.Unlock()
	}
	return next.Sub(now)
}

// tend looks after the nodes, and returns when it is to be called again.
func (l *Lines) tend(now clock.Instant) clock.Instant {
	s, e := &l.sentry, l.cfg.Engine
	if some := l.HasDesks(); some != s.listens {
		s.listens = some
		e.Listen(map[bool]int64{true: 1, false: -1}[some])
	}
	s.collect()
	if s.regained.Swap(false) { // in its pause the first of a line would learn of the quorum too late
		l.each(func(d *desk) {
			d.Freed()
			d.advance()
		})
	}
	if !s.listens {
		return clock.Never
	}
	lost := s.lost.Swap(0)
	if s.flushed.Load() != 0 && now >= s.calm {
		lost |= s.flushed.Swap(0)
		s.calm = now.Add(time.Duration(l.known.Load()) * flushCost)
	}
	s.late &= l.tracking.usable.Load()
	if s.late != 0 {
		s.due = min(s.due, now.Add(firstTrips))
	}
	if lost != 0 || now >= s.due {
		all := lost != 0 || now.Sub(s.visited) >= visitEvery
		var keys map[int][]string
		if all {
			s.visited = now
			keys = s.visit(lost, now)
		}
		s.due = now.Add(max(leastPing, min(2*l.cfg.QueryTimeout, visitEvery)))
		if s.late != 0 {
			all, s.due = true, now.Add(firstTrips)
		}
		s.askAll(all, keys)
	}
	if s.flushed.Load() != 0 {
		return min(s.due, s.calm)
	}
	return s.due
}

// Regained notes that a quorum of nodes has its vote again. It is called under the driver lock.
func (l *Lines) Regained() {
	if l.HasDesks() { // later callers ask the nodes themselves
		l.sentry.regained.Store(true)
		l.cfg.Ring()
	}
}

// visit has all desks know that pushes from the nodes of lost may be missing, and notes all nodes whose pushes they
// await. It returns the keys to ask each node about, if any.
func (s *sentry) visit(lost quorum.Set, now clock.Instant) (keys map[int][]string) {
	usable := s.lines.tracking.usable.Load()
	if usable != 0 && s.lines.known.Load() > maxAsks {
		keys = make(map[int][]string)
		s.turn++
	}
	s.nodes = 0
	s.lines.each(func(d *desk) {
		if d.nodes()&lost != 0 {
			d.lost(lost)
			d.advance()
		}
		s.nodes |= d.nodes()
		if keys != nil && d.first != nil && d.isIdle() && d.held <= now {
			among := usable &^ d.Nodes()
			if among == 0 {
				among = usable
			}
			for range s.turn % among.Len() {
				among &= among - 1
			}
			node := among.Least()
			keys[node] = append(keys[node], d.key)
		}
	})
	return keys
}

// askAll asks nodes for a sign of life: those from which desks await pushes, or all. One that has not answered the last
// time is not asked.
func (s *sentry) askAll(all bool, keys map[int][]string) {
	p := &s.lines.tracking
	nodes := s.nodes & p.usable.Load()
	if all {
		nodes = p.usable.Load() | p.silent.Load()
	}
	for _, q := range s.asked {
		nodes.Remove(q.Node)
	}
	for node := range nodes.All() {
		s.ask(node, keys[node], true)
	}
}

func (s *sentry) ask(node int, keys []string, timed bool) {
	some := keys[:min(len(keys), surveyKeys)]
	cfg := &s.lines.cfg
	q := cfg.Engine.Query(node, cfg.QueryTimeout)
	q.Ring = cfg.Ring
	if len(keys) == 0 {
		q.Buf, q.Replies = command.AppendPing(q.Buf)
	} else {
		q.Buf, q.Replies = command.AppendExists(q.Buf, some)
	}
	s.asked = append(s.asked, question{q, some, timed})
	cfg.Engine.Ask(q)
	if len(keys) > len(some) {
		s.ask(node, keys[len(some):], false)
	}
}

// collect takes the answers of nodes. The slow nodes are known when all have answered.
func (s *sentry) collect() {
	p, asked := &s.lines.tracking, s.asked
	s.asked = nil
	for _, q := range asked {
		select {
		case <-q.Answered():
		default:
			s.asked = append(s.asked, q)
			continue
		}
		switch {
		case q.Err == nil:
			if n := &s.trips[q.Node]; q.timed {
				n[0], n[1], n[2] = max(q.Took, 1), n[0], n[1]
			}
			if p.silent.Remove(q.Node) && !p.denied.Has(q.Node) {
				p.usable.Add(q.Node)
			}
			if len(q.keys) > 0 && q.Said[0].Err == nil {
				s.answered(q.Node, q.keys, int(q.Said[0].Ints[0]))
			}
		case engine.IsTimeout(q.Err):
			p.silence(q.Node)
		}
		q.Free()
	}
	if len(asked) > 0 && len(s.asked) == 0 {
		slow, late := s.trips.slow(p.slow.Load(), p.usable.Load())
		p.slow.Swap(slow)
		s.late = late
	}
}

// answered notes how many of the keys a node has.
func (s *sentry) answered(node int, keys []string, there int) {
	switch half := len(keys) / 2; {
	case there >= len(keys):
	case there > 0 && half > 0:
		s.ask(node, keys[:half], false)
		s.ask(node, keys[half:], false)
	default: // they may be free: their callers ask the quorum now
		now := s.lines.cfg.Clock.Now()
		for _, key := range keys {
			s.lines.at(key, func(d *desk) {
				if d.isIdle() && d.held <= now && d.Hurry(now) {
					d.advance()
				}
			})
		}
	}
}

// slow is the slow nodes among nodes, by the least of their last round trips: one delay by chance counts for nothing.
// late returns the nodes without three round trips yet, and those slow in the last one alone. A node that was slow before
// stays so until it takes less than half of the bound.
func (t *trips) slow(before, nodes quorum.Set) (slow, late quorum.Set) {
	var all []time.Duration
	for node := range nodes.All() {
		if d := slices.Min(t[node][:]); d > 0 {
			all = append(all, d)
		} else {
			late.Add(node)
		}
	}
	if len(all) < 2 {
		return 0, late
	}
	slices.Sort(all)
	bound := slowTimes*all[(len(all)-1)/2] + slowBy
	for node := range nodes.All() {
		d := slices.Min(t[node][:])
		if before.Has(node) {
			d *= 2
		}
		if d > bound {
			slow.Add(node)
		} else if t[node][0] > bound {
			late.Add(node)
		}
	}
	return slow, late
}
