package group

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/command"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/waiters"
	"github.com/redlock-go/redlock/quorum"
)

// sentry is the goroutine that looks after the lines while there are any. It begins with
// the first one, sleeps while there is none, and ends with the client.
//
// It asks the nodes for a sign of life: nothing else shows that one is dead, or slower than
// the others. It wakes a first that has to act, and does not know it, since it became the
// first in its sleep. It gives up places that are not needed, and forgets keys that are
// contended no more.
type sentry struct {
	lines   *lines
	once    sync.Once
	wake    chan struct{} // holds one
	lost    atomic.Uint64 // nodes whose pushes may be lost, a bit each
	mu      sync.Mutex    // taken last
	vacant  []string      // keys whose lines have a place in a queue that they may not need
	trips   trips
	done    chan struct{} // closed when it is to end
	ended   chan struct{}
	started atomic.Bool
}

// firstTrips is between the first questions to the nodes, until it is known which is slow.
const firstTrips = 20 * time.Millisecond

// lookEvery is how often the sentry looks at all lines, and asks silent nodes.
const lookEvery = waiters.LookEvery

func (s *sentry) init(l *lines) {
	s.lines, s.wake = l, make(chan struct{}, 1)
	s.done, s.ended = make(chan struct{}), make(chan struct{})
}

// start begins the goroutine, or wakes it.
func (s *sentry) start() {
	s.once.Do(func() {
		s.started.Store(true)
		go s.run()
	})
	s.ring()
}

// close ends the goroutine, once no waiter is left, and gives up all places in queues.
func (s *sentry) close() {
	s.once.Do(func() {}) // none begins now
	close(s.done)
	if s.started.Load() {
		<-s.ended
	}
}

// ring has the sentry look now.
func (s *sentry) ring() {
	select {
	case s.wake <- struct{}{}:
	default: // it will
	}
}

// vacate has the place of a line in a queue given up now, unless a waiter has come: it is in
// the way of another process, which waits for it.
func (s *sentry) vacate(key string) {
	s.mu.Lock()
	if len(s.vacant) < maxVacant { // the others are given up when they are forgotten
		s.vacant = append(s.vacant, key)
	}
	s.mu.Unlock()
	s.ring()
}

// maxVacant bounds what nodes can have the sentry remember.
const maxVacant = 4096

// vacateAll gives up the places of lines that have no waiter.
func (s *sentry) vacateAll() {
	s.mu.Lock()
	keys := s.vacant
	s.vacant = nil
	s.mu.Unlock()
	l := s.lines
	for _, key := range keys {
		sh := l.shard(key)
		sh.mu.Lock()
		var d departure
		if line := sh.table.Find(key); line != nil {
			d = l.change(sh.table.Vacate(line))
		}
		sh.mu.Unlock()
		l.depart(key, d)
	}
}

// lose notes that pushes of a node may have been lost.
func (s *sentry) lose(node int) {
	s.lost.Or(bit(node))
	s.ring()
}

// silence notes that a node has not answered in time. It is not used until it does.
func (l *lines) silence(node int) {
	l.pushes.silent.Or(bit(node))
	l.pushes.usable.And(^bit(node))
	l.sentry.lose(node)
}

func (s *sentry) run() {
	defer close(s.ended)
	g := s.lines.group
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	listens := false
	var looked, due time.Duration // when it looked last, and when it asks next
	var nodes uint64
	for {
		if some := s.lines.known.Load() > 0; some != listens {
			listens = some
			g.engine.Listen(map[bool]int64{true: 1, false: -1}[some])
		}
		pause := time.Hour
		if listens {
			pause = due - g.clock.Now()
		}
		timer.Reset(pause)
		select {
		case <-s.wake:
		case <-timer.C:
		case <-s.done:
			s.depart()
			return
		}
		s.vacateAll()
		lost := s.lost.Swap(0)
		now := g.clock.Now()
		if lost == 0 && now < due {
			continue
		}
		all := lost != 0 || now-looked >= lookEvery
		if all {
			looked, nodes = now, s.look(lost)
		}
		s.ask(nodes, all || !s.trips.know(s.lines.pushes.usable.Load()))
		due = g.clock.Now() + min(2*g.queryTimeout(), lookEvery)
		if !s.trips.know(s.lines.pushes.usable.Load()) {
			due = g.clock.Now() + firstTrips
		}
	}
}

// look looks at all lines, and returns the nodes that they wait to hear of. Pushes of the
// nodes of lost may have been lost.
func (s *sentry) look(lost uint64) (nodes uint64) {
	l := s.lines
	type left struct {
		key string
		departure
	}
	for i := range l.shards {
		var all []left
		sh := &l.shards[i]
		sh.mu.Lock()
		sh.table.Each(func(key string, line *line) {
			if d := l.change(sh.table.Look(line, lost)); d.Is {
				all = append(all, left{key, d})
			}
			nodes |= line.Contender.Nodes()
		})
		sh.mu.Unlock()
		for _, d := range all {
			l.depart(d.key, d.departure)
		}
	}
	return nodes
}

// depart gives up all places in queues, where other processes would wait for this one.
func (s *sentry) depart() {
	l := s.lines
	for i := range l.shards {
		all := map[string]departure{}
		sh := &l.shards[i]
		sh.mu.Lock()
		sh.table.Each(func(key string, line *line) {
			if node, first, is := line.Contender.Depart(); is {
				all[key] = departure{Is: is, First: first, Node: node}
			}
		})
		sh.mu.Unlock()
		for key, d := range all {
			l.depart(key, d)
		}
	}
}

// ask asks the nodes that waiters wait to hear of for a sign of life, and with all the others
// too. The answers are waited for, so there is one question to each at a time.
func (s *sentry) ask(nodes uint64, all bool) {
	g, p := s.lines.group, &s.lines.pushes
	ask := nodes & p.usable.Load()
	if all {
		ask = p.usable.Load() | p.silent.Load()
	}
	var asked [quorum.MaxNodes]*engine.Query
	for node := range g.Len() {
		if ask&bit(node) != 0 {
			q := g.engine.Query(node, g.queryTimeout())
			q.Buf, q.Replies = command.AppendPing(q.Buf)
			g.engine.Ask(q)
			asked[node] = q
		}
	}
	for node, q := range asked {
		if q == nil {
			continue
		}
		select {
		case <-q.Answered():
			switch {
			case q.Err == nil:
				s.trips.add(node, q.Took)
				p.speaks(node)
			case engine.IsTimeout(q.Err):
				s.lines.silence(node)
			}
		case <-g.ending:
		}
		q.Free()
	}
	p.slow.Store(s.trips.slow(p.slow.Load(), p.usable.Load()))
}

// speaks notes that a node has answered.
func (p *pushes) speaks(node int) {
	if has(&p.silent, node) {
		p.silent.And(^bit(node))
		if !has(&p.denied, node) {
			p.usable.Or(bit(node))
		}
	}
}
