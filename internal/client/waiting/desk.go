package waiting

import (
	"errors"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/quorum"
)

const (
	// knownFor is how long a key counts as contended after its last caller, and maxKnown for how many keys of a shard.
	knownFor = 3 * time.Second
	maxKnown = 1024

	// denialLasts is how long a grant or a denial speaks for calls that have not waited for it.
	denialLasts = time.Second
)

// desk is the business of this process with one key: its line of callers, first come, first served; what is known of
// its lock; and where the process stands among others (its Contender). It moves in one place, advance, after each
// event. No goroutine belongs to it. The lock of its shard protects it.
//
// Between two events a desk is in one of four states. DESIGN.md draws them.
//
//	turn    a caller asks the nodes, for all of the line; or all sharing callers at its head do (turns > 0)
//	asks    a node has a question of the desk (asked)
//	offers  a turn is due, and no caller rests: the first to come back has it
//	waits   for an instant, in the schedule of its shard, or for news
type desk struct {
	contention.Contender
	lines *Lines
	shard *shard
	key   string

	first, last *place
	asked       *inquiry // the question to a node; nil: there is none
	parting     parting  // the question to let go of the place with the attempt of the turn
	slot        int      // in the schedule of the shard
	weight      int32    // of the places
	turns       int32    // of places whose callers ask the nodes: one, or several sharers
	passes      int32    // how often the lock may still pass on before other processes have their turn

	offers bool // a turn is due
	brief  bool // it is for a look at the queue, where no other process was seen yet

	keptTurn // by a set
	order    // of the grants
	report   // of the last attempt, for the other callers

	listening *listening // for holders asking whether others want the lock; nil: there are none

	known clock.Instant // until when the key is known to be contended, without callers
	gated clock.Instant // when the nodes were last asked to let none share the lock; 0: no gate is up
}

// Place implements renewal.Entry.
func (d *desk) Place() *int { return &d.slot }

// advance does what can be done now: it gives the turn, or asks a node; and it notes when it is to be called again.
func (d *desk) advance() {
	defer d.gate()
	d.offers = false
	for d.isIdle() {
		now := d.lines.cfg.Clock.Now()
		switch {
		case d.keeper != nil && now >= d.keeps:
			late := d.keeper
			d.remove(late)
			late.of.ring()
			continue
		case d.first == nil:
			if until := d.listen(now); until != 0 {
				d.shard.due.Set(d, until)
			} else {
				d.settle(now)
			}
			return
		case engine.IsClosed(d.lines.cfg.Ending): // its callers are about to leave
			d.shard.due.Remove(d)
			return
		}
		around := d.lines.around(d, now)
		switch step := d.Next(&around); step.Action {
		case contention.Attempt, contention.Look:
			d.give(step.Action)
			if d.offers {
				d.shard.due.Remove(d)
				return
			}
		case contention.Pause:
			if free := d.FreeUntil(now); free != 0 {
				d.wakeSets(free)
			}
			until := step.Until
			if d.keeper != nil {
				until = min(until, d.keeps)
			}
			d.shard.due.Set(d, max(until, now+1))
			return
		case contention.Leave:
			d.leave(step.Leave)
		default:
			d.ask(step)
		}
	}
	d.shard.due.Remove(d) // the caller's report goes on here, or the node's answer
}

// give gives the turn to the first caller that may have it. If this caller shares the lock, the sharing callers right
// behind it get the turn too. While no caller rests, the turn is offered.
func (d *desk) give(what contention.Action) {
	turn := called
	if what == contention.Look {
		turn = looks
	}
	for p := d.first; p != nil && (d.turns == 0 || p.shared); p = p.next {
		a := p.of.gives(p, func(p *place) (state, bool) {
			if p.of.all { // it rests on: it takes several
				return rests, true
			}
			return turn, true
		})
		if a == takes {
			d.begin(p)
		}
		if a == stops || a == takes && !p.shared {
			break
		}
	}
	d.offers = d.turns == 0
}

// handOver gives the first caller that may have it the lock, or its release to go along with, and returns its place.
func (d *desk) handOver(f func(p *place) (state, bool)) *place {
	for p := d.first; p != nil; p = p.next {
		switch p.of.gives(p, f) {
		case takes:
			return p
		case stops:
			return nil
		}
	}
	return nil
}

// begin begins the turn of p.
func (d *desk) begin(p *place) {
	if !p.hasTurn() {
		p.stage = inTurn
		d.turns++
	}
}

// wakeSets wakes the sets that have not heard of the present gap, which ends then: gaps are for them too.
func (d *desk) wakeSets(free clock.Instant) {
	for p := d.first; p != nil; p = p.next {
		if p.of.all && p.free != free {
			p.of.ring()
		}
	}
}

// settle forgets a key without callers, or remembers for a while that it is contended. It has no turn to offer: a
// caller that comes back to rest does not move a forgotten desk.
func (d *desk) settle(now clock.Instant) {
	d.offers = false
	if d.known == 0 && len(d.shard.desks) <= maxKnown {
		d.known = now.Add(knownFor)
	}
	needless := d.isShared() || d.brief && d.youngest != 0 // sharing callers meet no others, and a look is over: they need no line
	drop := now >= d.known || needless && !d.HasOthers()
	until := d.known
	if now < d.passing { // stands has to know of it
		drop, until = false, max(until, d.passing)
	}
	if drop || d.BlocksOthers() {
		d.leave(d.Depart())
	}
	if !drop {
		d.shard.due.Set(d, until)
		return
	}
	d.shard.remove(d)
	d.lines.known.Add(-1)
}

// leave leaves the queues of nodes.
func (d *desk) leave(queues quorum.Set) {
	for node := range queues.All() {
		d.lines.takeBack(d.shard, leftPlace{key: d.key, node: node})
	}
}

// isIdle reports whether no caller of it asks the nodes, and it asks no node.
func (d *desk) isIdle() bool { return d.turns == 0 && d.asked == nil }

// push puts p at the end of the line.
func (d *desk) push(p *place) {
	p.stage, p.prev, p.next = inLine, d.last, nil
	if d.last == nil {
		d.first = p
	} else {
		d.last.next = p
	}
	d.last = p
	d.weight += int32(p.weight)
	d.lines.places.Add(1)
	d.known = 0
}

// out takes p out of the line for good, and has the desk go on where it was up to p.
func (d *desk) out(p *place) {
	had := p.hasTurn() || d.keeper == p
	d.remove(p)
	if had || d.first == nil || d.offers {
		d.advance()
	}
}

// remove takes p out of the line. A turn of it ends.
func (d *desk) remove(p *place) {
	if p.hasTurn() || d.keeper == p {
		d.Freed()
		d.endTurn(p)
	}
	if p.prev == nil {
		d.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next == nil {
		d.last = p.prev
	} else {
		p.next.prev = p.prev
	}
	p.stage, p.prev, p.next = out, nil, nil
	d.weight -= int32(p.weight)
	d.lines.places.Add(-1)
}

// endTurn ends the turn of p, kept or not.
func (d *desk) endTurn(p *place) {
	if p.hasTurn() {
		p.stage, d.parting = inLine, parting{}
		d.turns--
	}
	if d.keeper == p {
		d.keeper = nil
	}
}

// callers is how many callers wait here. One for any of n keys counts as a part of one.
func (d *desk) callers() int32 { return (d.weight + full - 1) / full }

// granted notes that one of its callers has the lock, until then. For the others it is taken.
func (d *desk) granted(now, until clock.Instant) {
	d.report = report{held: until, outcome: engine.ErrTaken, ended: now}
	d.kept = 0
}

// missedBy notes the end of an attempt without the lock. After a denial sets may keep turns again.
func (d *desk) missedBy(at clock.Instant, err error, shared bool) {
	if d.failed(at, err, shared) {
		d.kept = 0
	}
}

// attempted ends the turn of p, whose attempt has ended with err and the votes of nodes. A lock that was
// won is valid until then. Before other processes have their turn it may pass on to the present callers, or further
// if no other process is known.
func (d *desk) attempted(p *place, won bool, until clock.Instant, votes quorum.Tally, err error) {
	denied := votes.Nodes(quorum.Denied)
	parted := -1
	if at := d.parting; at.query != nil && !denied.Has(at.node) { // what its answer says otherwise is mended then (parted)
		parted = at.node
	}
	around := d.lines.around(d, d.lines.cfg.Clock.Now())
	d.endTurn(p)
	d.missedBy(around.Now, err, p.shared)
	taken := errors.Is(err, engine.ErrTaken)
	switch {
	case won && p.shared: // others may have it too
		d.remove(p)
		d.Won(&around, denied, -1)
		d.kept = 0
	case won:
		d.remove(p)
		d.Won(&around, denied, parted)
		d.granted(around.Now, until)
		d.passes = maxPasses - 1
		if d.HasOthers() {
			d.passes = min(d.passes, d.callers())
		}
	case taken && d.turns > 0: // the callers asking with it have one answer
	case taken:
		d.Denied(&around, denied)
	case IsRetryable(err): // no holder has denied it: it must not stand before callers that can win
		d.Denied(&around, 0)
		d.remove(p)
		d.push(p)
	default: // it leaves: the next asks at once
		d.Freed()
	}
	d.advance()
}

// looked ends the turn of p after its look: err is nil if the lock is free.
func (d *desk) looked(p *place, err error) {
	if err != nil && !errors.Is(err, engine.ErrTaken) {
		d.attempted(p, false, 0, quorum.Tally{}, err)
		return
	}
	around := d.lines.around(d, d.lines.cfg.Clock.Now())
	d.endTurn(p)
	d.missedBy(around.Now, err, p.shared)
	d.Looked(&around, err == nil)
	d.advance()
}

// mayPass reports whether the lock of a grant may be passed on. Only that of the youngest grant is: the holder of
// another one has lost its lock, though its validity may last longer.
func (d *desk) mayPass(serial uint64, now clock.Instant) bool {
	return d.isYoungest(serial) && d.passes > 0 && d.turns == 0 && !d.LeavesFree(now)
}

// pass passes the lock of h on to the first caller, and reports whether it did. The desk sleeps on: it has noted when
// the process has to act.
func (d *desk) pass(h holding.Hold, held *holding.State) bool {
	now := d.lines.cfg.Clock.Now()
	if !d.mayPass(held.Serial, now) {
		return false
	}
	var until clock.Instant
	if d.handOver(func(p *place) (s state, ok bool) {
		if p.of.all || p.wants.TTL == 0 {
			return rests, false
		}
		var next holding.Hold
		next, until, ok = h.Pass(now, p.stood, p.wants.TTL, p.wants.More)
		if ok {
			p.of.hold = next
			d.remove(p) // before its caller knows: p may be used again then
		}
		return served, ok
	}) == nil {
		return false
	}
	hash := d.lines.hash(d.key)
	if o, _ := d.lines.turns.note(hash, held.Turn, now, false); o != nothing {
		d.owe(d.lines.turns.take(hash, d.lines.cfg.Clock))
	}
	d.passed(now, until)
	return true
}

// passed notes that the lock was passed on.
func (d *desk) passed(now, until clock.Instant) {
	d.granted(now, until)
	d.passedOn(until)
	d.passes--
	if d.first == nil && d.asked == nil {
		d.settle(now)
	}
}

// along has the first caller ask for the lock of a grant at the moment of its release, if it may, and returns its call.
func (d *desk) along(serial uint64, now clock.Instant) *engine.Call {
	if serial < d.youngest || !d.isIdle() || !d.MayAttempt() || d.LeavesFree(now) {
		return nil
	}
	p := d.handOver(func(p *place) (state, bool) { return sent, p.of.call != nil && !p.shared })
	if p == nil {
		return nil
	}
	d.begin(p)
	d.gone(now)
	d.passing = 0
	d.offers = false
	d.Freed()
	d.shard.due.Remove(d)
	return p.of.call
}

// freed notes that the lock of a grant, or of an unknown one (0), was given back or lost: no holder in this process
// has the lock any more, unless a younger grant is known. A lock that was passed on ends by its own number alone: what
// is unknown may be an older one.
func (d *desk) freed(serial uint64, now clock.Instant) {
	if serial != 0 && serial < d.youngest {
		return
	}
	d.gone(now)
	d.denied = 0
	if serial != 0 {
		d.passing = 0
	}
	d.Freed()
	d.advance()
}
