package waiting

import (
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/internal/wire/command"
)

// part is the question that goes right behind the acquire with this value, of a caller that has its turn: where the node
// of the queue grants it, the process leaves, and the next one there knows that it is the first before the lock is
// released. It is nil where the process stays: other callers of it wait for the key, or it stands in no queue.
func (d *desk) part(p *place, value string) *engine.Query {
	node, parts := d.Parting(d.lines.cfg.Clock.Now())
	if !parts || !p.hasTurn() || p.shared || d.first != p || p.next != nil {
		return nil
	}
	cfg := &d.lines.cfg
	q := cfg.Engine.Query(node, cfg.QueryTimeout)
	q.Buf, q.Replies = command.AppendPart(q.Buf, d.key, d.lines.tracking.id, value)
	q.Ring = func() { d.parted(q) }
	d.parting = parting{node, q}
	return q
}

// parting is a question to let go of a place. A query is used again once it is answered, so the node is kept apart.
type parting struct {
	node  int
	query *engine.Query // nil: there is none, or the node has answered that it keeps the place
}

// parted takes the answer to such a question. A process that has lost all the same enters again. If the node has not let
// go of the place of one that has won, or may not have, it is taken back. A question to enter comes after this one at
// the node, and undoes it. The driver lock is held.
func (d *desk) parted(q *engine.Query) {
	d.shard.mu.Lock()
	defer d.lines.unlockDriven(d.shard)
	switch {
	case d.isEntering(q.Node):
	case q.Err == nil && q.Said[0].Err == nil && q.Said[0].Ints[0] >= 0:
		d.Parted(q.Node)
	case q.Err == nil && q.Said[0].Lacks:
		_ = d.lines.tracking.queueError(q.Node, &q.Said[0])
		d.parting = parting{}
	case d.parting.query == q:
		d.parting = parting{}
	case !d.shard.isUsed(d.key, q.Node):
		d.lines.takeBack(d.shard, leftPlace{key: d.key, node: q.Node})
	}
}

// isUsed reports whether a place in the queue of a node is in use, or is just being entered. The desk that has left it
// may be forgotten, and another stand there.
func (s *shard) isUsed(key string, node int) bool {
	d := s.desks[key]
	return d != nil && (d.isEntering(node) || d.Nodes().Has(node))
}

// isEntering reports whether a question to enter the queue of a node is under way.
func (d *desk) isEntering(node int) bool {
	return d.asked != nil && d.asked.step.Action == contention.Enter && d.asked.step.Node == node
}

// leftPlace is a place in the queue of a node, left by this process. It is owed back until the node has answered, or its
// ticket has ended: others wait for this process meanwhile. If a node refuses or misses the return, it is asked again
// after a growing pause.
type leftPlace struct {
	key   string
	node  int
	times int           // it was asked again
	due   clock.Instant // when it is next
}

const (
	// leavePause is the pause before the first repeat. Each other pause is twice as long as the one before. After
	// maxLeaves of them the ticket has ended.
	leavePause = 250 * time.Millisecond
	maxLeaves  = 7

	// maxOwed bounds the memory of a shard, since nodes can fill it: the tickets of others end.
	maxOwed = 128
)

// takeBack queues the question to a node to take a place back. unlock sends it. The shard is locked: so a later question of
// its desk, to enter, is behind it.
func (l *Lines) takeBack(s *shard, x leftPlace) {
	q := l.cfg.Engine.Query(x.node, l.cfg.QueryTimeout)
	q.Buf, q.Replies = command.AppendQueue(q.Buf, x.key, l.tracking.id, false, command.Leave, 0)
	q.Ring = func() { // once it is answered
		if err := q.Err; err == engine.ErrClosed || err == nil && q.Said[0].Err == nil || x.times >= maxLeaves {
			return
		}
		s.mu.Lock()
		defer l.unlockDriven(s)
		if len(s.owed) < maxOwed {
			x.due = l.cfg.Clock.Now().Add(leavePause << x.times)
			x.times++
			s.owed = append(s.owed, x)
			l.owed.Add(1)
		}
	}
	l.cfg.Engine.AskSoon(q)
	q.Free()
	s.asks = true
}

// leaveAgain asks again for the places of a shard to be taken back that are due. A place that is in use again, or is just
// being entered, is none: it is left with its desk.
func (l *Lines) leaveAgain(s *shard, now clock.Instant) {
	s.owed = slices.DeleteFunc(s.owed, func(x leftPlace) bool {
		if now < x.due {
			return false
		}
		if !s.isUsed(x.key, x.node) {
			l.takeBack(s, x)
		}
		l.owed.Add(-1)
		return true
	})
}
