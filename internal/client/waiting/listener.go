package waiting

import (
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/internal/wire/command"
	"github.com/redlock-go/redlock/quorum"
)

// Listener is a holder's wish to hear whether another caller wants its lock, of one key or of several. It hears once.
// Callers of its process tell it by their places in line. Callers of others are shown by the queue of their processes.
type Listener struct {
	hold   holding.Hold
	shared bool // the holder shares the lock: other sharers do not want it from the holder
	wanted chan struct{}
	once   sync.Once
}

// Wanted is closed once another caller wants the lock.
func (x *Listener) Wanted() <-chan struct{} { return x.wanted }

// holds reports whether the lock still has this holder.
func (x *Listener) holds(now clock.Instant) bool {
	s, ok := x.hold.State()
	return ok && !s.Released && now < s.Until
}

// listening is what a desk does for its listeners while it has no callers. It has no place in the queue then: a process
// behind it would wait for it. Nothing of a release knows of listeners; a desk finds out which have lost their lock.
type listening struct {
	listeners []*Listener
	state     hearing
	query     *inquiry
	sure      bool          // the process there now waits: none was there before, or has left when it was rung
	node      int           // of the queue
	due       clock.Instant // when the node is asked again
	asked     clock.Instant // when it was asked last
	round     clock.Instant // when the other nodes are asked again
	seen      quorum.Set    // of these, with a process in its queue
}

// hearing is what is known of the queue.
//
//	idle ── due ──► asks ──► empty ── a push: another process ──► told
//	 ▲               │  └──► others wait ───────────────────────► told
//	 │               ├─────► rung ─── a push, ringLasts ─► idle
//	 └─ a push, due ─┴─────► mixed ── a push, a second ──► idle
//
// A process that was alone in its queue keeps its place for three seconds after its last caller. The question rings it, and
// without a caller it leaves at once. So one that is there still after some round trips waits.
type hearing uint8

const (
	idle  hearing = iota
	asks          // a question is under way
	again         // likewise, and the queue has changed since
	empty         // the node pushes the first process to come
	rung          // likewise each change: one is there, perhaps without callers
	mixed         // likewise: some want what the listeners have, and some share it
)

// ringLasts is the time for a process to leave a queue once it was rung; or four times as long as the node takes to answer.
const ringLasts = 15 * time.Millisecond

// mixedPause is the least time from one question about a queue with others to the next.
const mixedPause = 10 * time.Millisecond

// Listen has the holder of a lock on key hear whether others want it, and returns its listener: x, which listens at
// another key of the lock too, or the one there was, or a new one. It does not wait for nodes.
func (l *Lines) Listen(key string, h holding.Hold, shared bool, x *Listener) *Listener {
	s := l.lock(key)
	defer l.unlock(s)
	d, isNew := l.deskFor(s, key)
	if isNew {
		d.known = l.cfg.Clock.Now() // it need not outlast its listeners
		l.cfg.Ring()                // pushes are to be read
	}
	if d.listening == nil {
		d.listening = new(listening)
	}
	all := d.listening
	at := slices.IndexFunc(all.listeners, func(y *Listener) bool { return y.hold == h })
	switch {
	case at >= 0:
		return all.listeners[at]
	case x == nil:
		x = &Listener{hold: h, shared: shared, wanted: make(chan struct{})}
	}
	all.listeners = append(all.listeners, x)
	all.due = 0
	for p := d.first; p != nil; p = p.next {
		d.wantedBy(p.shared)
	}
	if d.first == nil && d.isIdle() {
		d.advance()
	}
	return x
}

// wantedBy has the listeners hear that another caller wants the lock; shares: to share it.
func (d *desk) wantedBy(shares bool) {
	if d.listening == nil {
		return
	}
	now := d.lines.cfg.Clock.Now()
	for _, x := range d.listening.listeners {
		if x.shared && shares || !x.holds(now) {
			continue
		}
		x.once.Do(func() { close(x.wanted) })
	}
}

// listen has a desk without callers do what its listeners need, and returns when it is to be called again; or 0, if none
// has its lock any more.
func (d *desk) listen(now clock.Instant) (until clock.Instant) {
	x := d.listening
	if x == nil {
		return 0
	}
	x.listeners = slices.DeleteFunc(x.listeners, func(l *Listener) bool { return !l.holds(now) })
	if len(x.listeners) == 0 || engine.IsClosed(d.lines.cfg.Ending) {
		d.listening = nil
		return 0
	}
	if x.state == asks || x.state == again { // the answer has the desk go on
		return now.Add(mostAsk)
	}
	if now < x.due {
		return x.due
	}
	around := d.lines.around(d, now)
	x.due = now.Add(around.Ask)
	if !slices.ContainsFunc(x.listeners, func(l *Listener) bool { return !engine.IsClosed(l.wanted) }) {
		return x.due
	}
	if left := d.Depart(); left != 0 {
		d.leave(left)
	}
	x.state, x.sure = idle, x.sure || x.state == rung || x.state == empty
	home, ok := d.Home(&around)
	if !ok { // a waiting process polls, and stands in no queue
		return x.due
	}
	if q := d.askQueue(home, true, func(q *inquiry) { d.listened(q) }); q != nil {
		x.state, x.query, x.node, x.asked = asks, q, home, now
	}
	if now >= x.round { // to which another process may see itself driven
		x.round = now.Add(around.Ask)
		for node := range (around.Usable &^ quorum.Only(home)).All() {
			d.askQueue(node, false, func(q *inquiry) { d.listenedElsewhere(q) })
		}
	}
	return x.due
}

// askQueue asks a node for the processes in its queue, and to track that. The answer is freed once it was taken. It is nil where the
// node is not asked.
func (d *desk) askQueue(node int, tracks bool, take func(q *inquiry)) *inquiry {
	q := d.inquire(contention.Step{Node: node}, tracks)
	shared := !slices.ContainsFunc(d.listening.listeners, func(l *Listener) bool { return !l.shared })
	buf, replies := command.AppendListen(q.Buf, d.key, d.lines.tracking.id, shared, tracks)
	q.Buf, q.Replies = buf, q.begins+replies
	q.Ring = func() {
		d.shard.mu.Lock()
		defer d.lines.unlockDriven(d.shard)
		defer q.Free()
		if d.listening != nil {
			take(q)
		}
	}
	if !d.send(q) {
		return nil
	}
	return q
}

// listened takes the answer of the node of the queue. The driver lock is held.
func (d *desk) listened(q *inquiry) {
	l, x := d.lines, d.listening
	if x.query != q {
		return
	}
	was, sure := x.state, x.sure
	x.query, x.state, x.sure = nil, idle, false
	here, exists, err := l.tracking.queue(q)
	around := l.around(d, l.cfg.Clock.Now())
	switch {
	case err != nil:
		d.Failed(&around, q.step.Node)
		x.due = around.Now
	case waits(here, sure):
		d.wantedBy(false)
	case was == again:
		x.due = around.Now
	case here.Others == 1:
		x.state, x.due = rung, around.Now.Add(max(ringLasts, 4*q.Took))
	case exists: // of sharers; or another process has come between
		x.state = mixed
		d.wantedBy(true)
	default:
		x.state = empty
	}
	if d.first == nil && d.isIdle() {
		d.advance()
	}
}

// listenedElsewhere takes the answer of another node: processes that could not use the first wait there. One that is there
// in two rounds waits. The second follows soon.
func (d *desk) listenedElsewhere(q *inquiry) {
	x, node := d.listening, q.step.Node
	here, _, err := d.lines.tracking.queue(q)
	switch sure := x.seen.Has(node); {
	case err != nil || here.Others == 0:
		x.seen.Remove(node)
	case waits(here, sure):
		d.wantedBy(false)
	default:
		x.seen.Add(node)
		x.round = d.lines.cfg.Clock.Now().Add(max(ringLasts, 4*q.Took))
		x.due = min(x.due, x.round)
	}
	if d.first == nil && d.isIdle() {
		d.advance()
	}
}

// waits reports whether some process waits in a queue. One that knows of others, and one that is there for sure, does.
func waits(here contention.Entry, sure bool) bool {
	return here.Others > 1 || here.Others == 1 && (sure || here.Left < contention.FirstTicket)
}

// queue reads the processes in a queue; and, of a tracked one, whether any was there right after that.
func (p *tracking) queue(q *inquiry) (here contention.Entry, exists bool, err error) {
	if err := p.begun(q); err != nil {
		return here, false, err
	}
	node, said := q.step.Node, q.Said[q.begins:]
	if err := p.queueError(node, &said[0]); err != nil {
		return here, false, err
	}
	here = contention.EntryOfQueue(said[0].Ints, 0)
	if len(said) == 1 {
		return here, false, nil
	}
	ttl, err := p.isTracked(node, &said[1], &said[2])
	return here, ttl != 0, err
}

// queueChanged notes that a node has pushed the queue, and reports whether that matters.
func (d *desk) queueChanged(node int) bool {
	x := d.listening
	if x == nil || x.node != node {
		return false
	}
	switch x.state {
	case asks:
		x.state = again
	case empty, rung, mixed:
		x.sure = x.state == empty
		if x.sure {
			d.wantedBy(true)
		}
		x.state, x.due = idle, max(x.asked.Add(mixedPause), d.lines.cfg.Clock.Now())
	}
	return true
}

// nodes is the nodes whose pushes are awaited.
func (d *desk) nodes() quorum.Set {
	if x := d.listening; x != nil && x.state != idle {
		return d.Nodes() | quorum.Only(x.node)
	}
	return d.Nodes()
}

// lost notes that pushes of nodes may be lost.
func (d *desk) lost(nodes quorum.Set) {
	d.Lost(nodes)
	switch x := d.listening; {
	case x == nil || !nodes.Has(x.node):
	case x.state == asks:
		x.state = again
	case x.state >= empty:
		x.state, x.due = idle, 0
	}
}
