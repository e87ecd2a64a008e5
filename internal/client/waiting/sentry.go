package waiting

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// sentry looks after the nodes while there are desks: it asks them for a sign of life. Nothing else shows a dead node,
// or one slower than the others.
type sentry struct {
	lines    *Lines
	lost     quorum.SharedSet // nodes that may have pushed in vain
	flushed  quorum.SharedSet // nodes that have forgotten what they track; their desks are not notified yet
	calm     clock.Instant    // when they are
	regained atomic.Bool      // a quorum of nodes has its vote again: waiting callers ask at once
	mu       sync.Mutex       // taken last
	owed     []stay           // places that nodes have not taken back
	listens  bool             // pushes are waited for
	visited  clock.Instant    // when all desks were last notified of lost nodes
	due      clock.Instant    // when it asks next
	nodes    quorum.Set       // from which desks await pushes
	asked    [quorum.MaxNodes]*engine.Query
	trips    trips
	late     quorum.Set // nodes perhaps slow, all at first: they are asked again soon
}

const (
	// firstTrips is between the questions to the nodes until the slow ones are known.
	firstTrips = 20 * time.Millisecond

	// leastPing is between the later questions to a node at least, however short the timeout: by default it is as long.
	leastPing = 100 * time.Millisecond

	// visitEvery is how often the sentry goes to all desks, and asks silent nodes.
	visitEvery = 500 * time.Millisecond

	// flushCost is the time for each desk until flushes count again: a flush costs it five commands of a node.
	flushCost = 10 * time.Millisecond

	// maxOwed bounds the sentry's memory, since nodes can fill it.
	maxOwed = 4096
)

// lose notes that pushes of a node may be lost.
func (s *sentry) lose(node int) {
	s.lost.Add(node)
	if s.lines.Known() {
		s.lines.cfg.Ring()
	}
}

// flush notes that a node has forgotten what it tracks, since others have deleted all keys of some database. If they
// do so all the time, the desks are not at once where they were: the questions of each second find the free locks.
func (s *sentry) flush(node int) {
	if s.flushed.Add(node) && s.lines.Known() {
		s.lines.cfg.Ring()
	}
}

// Turn has the desks go on that are due, looks after the nodes, and returns the pause to the next turn. It does not
// wait for nodes: their answers ring.
//
// Without desks it goes through no shards: locks that are kept alive ring too.
func (l *Lines) Turn() time.Duration {
	now := l.cfg.Clock.Now()
	if l.sleeps() {
		return l.tend(now).Sub(now)
	}
	next := min(l.advance(now), l.tend(now))
	l.next.Store(int64(next))
	for i := range l.shards { // what has changed since, before others could see it
		s := &l.shards[i]
		s.mu.Lock()
		next = min(next, s.next())
		s.mu.Unlock()
	}
	return next.Sub(now)
}

// sleeps reports whether there are no desks. A new one is counted before it is in the schedule, and next is read after
// that. So it is seen here, or rings.
func (l *Lines) sleeps() bool {
	if l.Known() {
		return false
	}
	l.next.Store(int64(clock.Never))
	return !l.Known()
}

// tend looks after the nodes, and returns when it is to be called again.
func (l *Lines) tend(now clock.Instant) clock.Instant {
	s, e := &l.sentry, l.cfg.Engine
	if some := l.Known(); some != s.listens {
		s.listens = some
		e.Listen(map[bool]int64{true: 1, false: -1}[some])
	}
	s.collect()
	l.survey.collect()
	leave := s.leaveAgain(now)
	if s.regained.Swap(false) {
		s.askAgain()
	}
	if !s.listens {
		return leave
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
		if all {
			s.visited, s.nodes = now, s.visit(lost)
			l.survey.begin(now)
		}
		s.due = now.Add(max(leastPing, min(2*l.cfg.QueryTimeout, visitEvery)))
		if s.late != 0 {
			all, s.due = true, now.Add(firstTrips)
		}
		s.ask(all)
	}
	if s.flushed.Load() != 0 {
		leave = min(leave, s.calm)
	}
	return min(s.due, leave)
}

// Regained notes that a quorum of nodes has its vote again. It is called under the driver lock.
func (l *Lines) Regained() {
	if l.Known() { // later callers ask the nodes themselves
		l.sentry.regained.Store(true)
		l.cfg.Ring()
	}
}

// askAgain has the first of each line ask the nodes: in its pause it would learn of the quorum too late.
func (s *sentry) askAgain() {
	s.lines.each(func(d *desk) {
		d.Freed()
		d.advance()
	})
}

// visit has all desks know that pushes from the nodes of lost may be missing. It returns all nodes whose pushes they
// await.
func (s *sentry) visit(lost quorum.Set) (nodes quorum.Set) {
	s.lines.each(func(d *desk) {
		if d.Nodes()&lost != 0 {
			d.Lost(lost)
			d.advance()
		}
		nodes |= d.Nodes()
	})
	return nodes
}

// ask asks for a sign of life the nodes from which waiters await pushes, or all nodes. There is one question to each
// at a time.
func (s *sentry) ask(all bool) {
	e, p := s.lines.cfg.Engine, &s.lines.tracking
	ask := s.nodes & p.usable.Load()
	if all {
		ask = p.usable.Load() | p.silent.Load()
	}
	for node := range s.lines.cfg.Nodes {
		if ask.Has(node) && s.asked[node] == nil {
			q := e.Query(node, s.lines.cfg.QueryTimeout)
			q.Ring = s.lines.cfg.Ring
			q.Buf, q.Replies = command.AppendPing(q.Buf)
			s.asked[node] = q
			e.Ask(q)
		}
	}
}

// collect takes the answers of nodes. The slow nodes are known when all have answered.
func (s *sentry) collect() {
	p := &s.lines.tracking
	heard, open := false, false
	for node, q := range s.asked {
		if q == nil {
			continue
		}
		select {
		case <-q.Answered():
		default:
			open = true
			continue
		}
		switch {
		case q.Err == nil:
			s.trips.add(node, q.Took)
			p.speaks(node)
		case engine.IsTimeout(q.Err):
			p.silence(node)
		}
		q.Free()
		s.asked[node], heard = nil, true
	}
	if heard && !open {
		var slow quorum.Set
		slow, s.late = s.trips.slow(p.slow.Load(), p.usable.Load())
		p.slow.Swap(slow)
	}
}
