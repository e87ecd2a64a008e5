package waiting

import (
	"cmp"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/quorum"
)

// Demand is what one caller waits for: a lock on any of some keys, or on all of them; one key is both. It has a place
// in the line of each. Its methods are for the caller's goroutine.
type Demand struct {
	lines  *Lines       // of its first key: it counts there
	all    bool         // a set: all of several keys, as one lock
	call   *engine.Call // of a caller of one key: a release may take it along; or nil
	places []place
	only   [1]place // of a caller of one key
	rung   chan struct{}
	timer  *time.Timer // of a caller with an instant of its own

	mu    sync.Mutex // taken after a shard's, before a lease's
	state state
	gift  *place       // where it was given its turn, or a lock
	hold  holding.Hold // passed on to it, until Await returns it
}

// state is what a caller does. A desk gives it something only while it rests.
type state uint8

const (
	rests  state = iota // it waits in Await, or is about to, and takes what comes first
	called              // a desk has given it the turn
	looks               // likewise, for a look alone
	sent                // a release has taken its call along
	served              // a lock was passed on to it
	acts                // it asks the nodes
	away                // it is about to leave
)

// place is the place of a demand in the line of a desk. The shard's lock protects it.
type place struct {
	of         *Demand
	desk       *desk // nil: it has stood in no line yet, or is out of it for good
	prev, next *place
	wants      Passable
	stood      clock.Instant // since when it waits
	free       clock.Instant // the end of the last gap that its set has seen
	had        int32         // in how many turns its set was not denied the key
	at         uint8         // of the key
	weight     uint8         // a part of full
	stage      stage
	shared     bool // its caller wants to share the lock
}

// stage is where a place is. A place in line leaves it with a lock, or when it has kept a turn for long enough.
type stage uint8

const (
	out     stage = iota // in no line
	inLine               // it stands there, or keeps a turn (keptTurn)
	inTurn               // its caller asks the nodes. A set has not heard of the turn, or uses one that it keeps
	newTurn              // likewise, and its set has just heard of the turn
)

func (p *place) hasTurn() bool { return p.stage >= inTurn }

// full is the weight of a caller in one line.
const full = 64

// Seat is one key of a demand: where it is waited for, and how the attempt before has ended.
type Seat struct {
	Lines *Lines // nil: it is not waited for yet
	Key   string
	Share bool
	Wants Passable
	Last  Ended
}

// Passable is the lock taken by a caller from a holder in this process. It has the value that the caller's own lock
// would have at the nodes, and is kept alive by the caller's TTL. Without a TTL the caller takes none: the nodes have
// to grant the lock.
type Passable struct {
	TTL  time.Duration
	More *holding.More
}

// Ended is how an attempt has ended: without the lock, with Err, denied by the nodes of Denied. Err is nil where there
// was none.
type Ended struct {
	At     clock.Instant
	Err    error
	Denied quorum.Set
}

// Reason is why a caller waits no longer.
type Reason uint8

const (
	none       Reason = iota // none: it waits
	MayAttempt               // it is to ask the nodes for the lock
	MayLook                  // it is to look whether the lock is free
	Sent                     // its call has asked them, along with a release, and has ended
	Handed                   // the lock was passed on to it
	GivesUp                  // its limit is over
	UsedUp                   // its attempts are used up
	Closed                   // the client closes
)

// Stand puts a demand at the end of the line of each seat.
func (l *Lines) Stand(all bool, c *engine.Call, seats ...Seat) *Demand {
	d, _ := l.pool.Get().(*Demand)
	if d == nil {
		d = &Demand{lines: l, rung: make(chan struct{}, 1)}
	}
	d.all, d.call, d.state, d.places = all, c, rests, d.only[:]
	if len(seats) > 1 {
		d.places = make([]place, len(seats))
	}
	l.waiting.Enter() // until it leaves: also a lock passed on to it is waited for at the end
	for at, s := range seats {
		d.places[at] = place{of: d, at: uint8(at), weight: uint8(max(1, full/len(seats)))}
		if s.Lines != nil {
			d.Join(at, s)
		}
	}
	return d
}

// Join puts the demand at the end of one line more, unless it stands there, or had a turn there until now.
func (d *Demand) Join(at int, s Seat) {
	p, l := &d.places[at], s.Lines
	if p.desk != nil {
		return
	}
	sh := l.lock(s.Key)
	defer l.unlock(sh)
	k, isNew := l.deskFor(sh, s.Key)
	p.desk, p.wants, p.shared, p.free, p.stood = k, s.Wants, s.Share, 0, l.cfg.Clock.Now()
	k.push(p)
	k.failed(s.Last.At, s.Last.Err, s.Share)
	k.wantedBy(s.Share)
	if last := s.Last; isNew && (last.Denied != 0 || last.Err != nil && last.Err != engine.ErrTaken) { // else it may be old news to the first, watching the key since
		around := l.around(k, p.stood)
		k.Denied(&around, last.Denied)
	}
	if k.first == p || k.offers {
		k.advance()
	}
	if isNew {
		l.cfg.Ring() // pushes are to be read at once
	}
}

// each calls f for each place with a desk, with its shard locked.
func (d *Demand) each(f func(p *place, k *desk)) {
	for i := range d.places {
		p := &d.places[i]
		if k := p.desk; k != nil {
			s := k.lines.lock(k.key)
			f(p, k)
			k.lines.unlock(s)
		}
	}
}

// Await waits until the caller may ask for the key at a place, or has its lock. A caller that has waited in vain learns
// how the last attempt of a line, by others, ended.
func (d *Demand) Await(limit engine.Limit, t *Tries) (why Reason, at int, handed holding.Hold) {
	d.mu.Lock()
	back := d.state >= acts // from the nodes: it takes what comes, and first the turn offered by a desk
	if back {
		d.state = rests
	}
	d.mu.Unlock()
	if back {
		d.each(func(_ *place, k *desk) {
			if k.offers {
				k.advance()
			}
		})
	}
	for {
		why, at, handed = d.take(d.lines.over(limit))
		if why == none {
			over := d.due(t)
			if over == none && d.all {
				over = d.turns(t)
			}
			if over != none { // what it was given meanwhile comes before the end of its attempts
				why, at, handed = d.take(over)
			}
		}
		switch why {
		case none:
			d.sleep(t.next, limit)
			continue
		case Sent:
			d.call.Wait()
			if d.call.Err == engine.ErrBusy { // the release had no room for it
				why = cmp.Or(d.lines.over(limit), MayAttempt)
			}
		case MayAttempt:
			if d.all {
				d.resume()
			}
		}
		if why > Handed {
			d.Hear(t)
		}
		return why, at, handed
	}
}

// take takes what it was given, unless its wait is over for another reason. Then it rests no longer.
func (d *Demand) take(over Reason) (why Reason, at int, handed holding.Hold) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gift != nil {
		at = int(d.gift.at)
	}
	why = over
	switch {
	case d.state == sent: // an attempt, also if the wait has ended since
		why = Sent
	case over != none:
	case d.state == served:
		why, handed, d.hold = Handed, d.hold, holding.Hold{}
	case d.state == called:
		why = MayAttempt
	case d.state == looks:
		why = MayLook
	default:
		return none, 0, handed
	}
	d.state = away
	if why == Sent || why == MayAttempt || why == MayLook {
		d.state = acts
	}
	return why, at, handed
}

// due is what follows at the instant of a caller with a limit of attempts, or of a poller.
func (d *Demand) due(t *Tries) Reason {
	switch {
	case t.next == clock.Never || d.lines.cfg.Clock.Now() < t.next:
	case t.polls:
		return MayAttempt
	case d.asks():
		t.next = clock.Never
	case !t.skipped():
		return UsedUp
	}
	return none
}

// asks has it ask the nodes where it comes first, and reports whether it will: at once, or when a node has answered.
func (d *Demand) asks() (will bool) {
	d.each(func(p *place, k *desk) {
		if !will && k.first == p && k.turns == 0 && k.Hurry(k.lines.cfg.Clock.Now()) {
			will = true
			k.advance()
		}
	})
	return will
}

// Hear gives a caller, in vain so far, the end of the last attempt of its lines: while it waited, or in the second before.
// While nodes are asked for one of its locks, only what they denied in the last second of its wait counts.
func (d *Demand) Hear(t *Tries) {
	now, since := d.lines.cfg.Clock.Now(), clock.Instant(0)
	d.each(func(p *place, k *desk) {
		if p.stage != out && !k.isIdle() {
			since = max(t.Began, now.Add(-denialLasts))
		}
	})
	if t.at < since && t.Last == engine.ErrTaken {
		t.Last = nil
	}
	d.each(func(p *place, k *desk) {
		if p.stage != out {
			t.Hear(k.news(now, t.Began, since, p.shared))
		}
	})
}

// Attempted reports the end of the attempt of its turn: h is its result, and votes are those of the nodes. It rests
// from now on, or is away.
func (d *Demand) Attempted(h holding.Hold, votes quorum.Tally, err error, rests bool) {
	held, won := h.State()
	d.ended(rests, func(p *place) { p.desk.attempted(p, won, held.Until, votes, err) })
}

// Looked is Attempted for a turn in which it has looked: err is nil if the lock is free.
func (d *Demand) Looked(err error, rests bool) {
	d.ended(rests, func(p *place) { p.desk.looked(p, err) })
}

// ended ends its turn by f.
func (d *Demand) ended(rests bool, f func(p *place)) {
	turn := d.end(rests)
	d.each(func(p *place, k *desk) {
		switch {
		case p == turn && p.hasTurn():
			f(p)
		case rests && k.offers:
			k.advance()
		}
	})
}

// Part is a question to go right behind the acquire of its turn, with this value; or nil. See desk.part.
func (d *Demand) Part(value string) (q *engine.Query) {
	if d.all || d.gift == nil {
		return nil
	}
	k := d.gift.desk
	s := k.lines.lock(k.key)
	defer k.lines.unlock(s)
	return k.part(d.gift, value)
}

// end ends what it does.
func (d *Demand) end(resting bool) (turn *place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	turn, d.gift, d.state = d.gift, nil, away
	if resting {
		d.state = rests
	}
	return turn
}

// Leave takes it out of its lines, for another caller to use. A lock passed on to it, and not taken, is released, and
// so passes on. No demand leaves nothing.
func (d *Demand) Leave() {
	if d == nil {
		return
	}
	l := d.lines
	gift := d.end(false)
	if d.all {
		d.Left(holding.Hold{})
	} else {
		d.each(func(p *place, k *desk) {
			if p.stage != out {
				k.out(p)
			}
		})
	}
	if d.hold != (holding.Hold{}) {
		gift.desk.lines.cfg.Release(d.hold)
	}
	l.waiting.Leave() // only now: Close leaves the queues, and ends the connections, when none waits
	if len(d.places) > 1 {
		return
	}
	d.call, d.hold, d.only[0] = nil, holding.Hold{}, place{}
	select {
	case <-d.rung:
	default:
	}
	l.pool.Put(d)
}

// answer is a demand's to a desk with something to give.
type answer uint8

const (
	takes answer = iota
	skips        // it is about to leave, or has another key: the next in line may have it
	stops        // it comes first, and cannot have it now: nor can the others
)

// gives has f give it something at p, if it rests, and returns what it does then. The shard of p is locked.
func (d *Demand) gives(p *place, f func(p *place) (state, bool)) answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.state == acts && d.all: // it asks for this key too
		return stops
	case d.state != rests:
		return skips
	}
	s, ok := f(p)
	if !ok {
		return stops
	}
	d.state = s
	if s != rests {
		d.gift = p
	}
	d.ring()
	return takes
}

// ring wakes its caller.
func (d *Demand) ring() {
	select {
	case d.rung <- struct{}{}:
	default: // it will look
	}
}

// sleep waits until it is rung, until an instant, or until the caller gives up.
func (d *Demand) sleep(until clock.Instant, limit engine.Limit) {
	var due <-chan time.Time
	if limit.At != 0 {
		until = min(until, limit.At)
	}
	if until != clock.Never {
		if d.timer == nil {
			d.timer = time.NewTimer(time.Hour)
		}
		d.timer.Reset(until.Sub(d.lines.cfg.Clock.Now()))
		due = d.timer.C
	}
	select {
	case <-d.rung:
	case <-due:
	case <-limit.Done:
	case <-d.lines.cfg.Ending:
	}
}
