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

// sentry looks after the lines while there are any.
//
// It asks the nodes for a sign of life: nothing else shows a dead node, or one slower than the others. It wakes a
// first that has to act and does not know it, having become the first in its sleep. It gives up unneeded places, and
// forgets keys no longer contended.
type sentry struct {
	lines    *Lines
	lost     quorum.SharedSet // nodes that may have pushed in vain
	flushed  quorum.SharedSet // nodes that have forgotten what they track, and were not looked after since
	calm     clock.Instant    // when they are
	regained atomic.Bool      // a quorum of nodes has its vote again: those who wait ask at once
	mu       sync.Mutex       // taken last
	vacant   []string         // keys of lines with a place in a queue, perhaps unneeded
	owed     []stay           // places that nodes have not taken back
	listens  bool             // pushes are waited for
	looked   clock.Instant    // when it looked last at all lines
	due      clock.Instant    // when it asks next
	nodes    quorum.Set       // from which lines await pushes
	asked    [quorum.MaxNodes]*engine.Query
	trips    trips
	late     quorum.Set // nodes perhaps slow, all at first: they are asked again soon
}

const (
	// firstTrips is between the questions to the nodes until the slow ones are known.
	firstTrips = 20 * time.Millisecond

	// leastPing is between the later questions to a node at least, however short the timeout: by default it is as long.
	leastPing = 100 * time.Millisecond

	// lookEvery is how often the sentry looks at all lines, and asks silent nodes.
	lookEvery = 500 * time.Millisecond

	// flushCost is the time for each line until flushes count again: a flush costs its waiter five commands of a
	// node.
	flushCost = 10 * time.Millisecond

	// maxVacant bounds the sentry's memory, since nodes can fill it.
	maxVacant = 4096
)

// vacate has the place of a line in a queue given up now, unless a waiter has come: another
// process waits for it.
func (s *sentry) vacate(key string) {
	s.mu.Lock()
	if len(s.vacant) < maxVacant { // the others are given up once they are forgotten
		s.vacant = append(s.vacant, key)
	}
	s.mu.Unlock()
	s.lines.cfg.Ring()
}

// lose notes that pushes of a node may be lost.
func (s *sentry) lose(node int) {
	s.lost.Add(node)
	if s.lines.Known() {
		s.lines.cfg.Ring()
	}
}

// flush notes that a node has forgotten what it tracks, since others have deleted all keys of some database. If they
// do so all the time, the lines are not at once where they were: the questions of each second find the free locks.
func (s *sentry) flush(node int) {
	if s.flushed.Add(node) && s.lines.Known() {
		s.lines.cfg.Ring()
	}
}

// Turn looks after the lines, and returns the pause to the next turn. It does not wait for
// nodes: their answers ring.
func (l *Lines) Turn() time.Duration {
	s, e := &l.sentry, l.cfg.Engine
	if some := l.Known(); some != s.listens {
		s.listens = some
		e.Listen(map[bool]int64{true: 1, false: -1}[some])
	}
	s.vacateAll()
	s.collect()
	l.survey.collect()
	now := l.cfg.Clock.Now()
	leave := s.leaveAgain(now)
	if s.regained.Swap(false) {
		s.askAgain()
	}
	if !s.listens {
		return leave.Sub(now)
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
		all := lost != 0 || now.Sub(s.looked) >= lookEvery
		if all {
			s.looked, s.nodes = now, s.look(lost)
			l.survey.begin(now)
		}
		s.due = now.Add(max(leastPing, min(2*l.cfg.QueryTimeout, lookEvery)))
		if s.late != 0 {
			all, s.due = true, now.Add(firstTrips)
		}
		s.ask(all)
	}
	if s.flushed.Load() != 0 {
		leave = min(leave, s.calm)
	}
	return min(s.due, leave).Sub(now)
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
	s.lines.each(func(_ *shard, l *line) departure {
		l.contender.Freed()
		l.wake()
		return departure{}
	})
}

// vacateAll gives up the places of lines without a waiter.
func (s *sentry) vacateAll() {
	s.mu.Lock()
	keys := s.vacant
	s.vacant = nil
	s.mu.Unlock()
	for _, key := range keys {
		var d departure
		sh := s.lines.lock(key)
		if line := sh.lines[key]; line != nil {
			d = s.lines.settle(sh, line)
		}
		sh.mu.Unlock()
		s.lines.tracking.leave(d)
	}
}

// look looks at all lines, and returns the nodes from which they await pushes. Pushes from the nodes of lost may be
// lost.
func (s *sentry) look(lost quorum.Set) (nodes quorum.Set) {
	now := s.lines.cfg.Clock.Now()
	s.lines.each(func(sh *shard, l *line) (d departure) {
		c := &l.contender
		affected := c.Nodes()&lost != 0
		c.Lost(lost)
		switch w := l.actor(); {
		case w == nil:
			d = s.lines.settle(sh, l)
		case affected, !l.busy && c.Renew() < min(w.look, now.Add(lookEvery)):
			w.bell.ring()
		}
		nodes |= c.Nodes()
		return d
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
