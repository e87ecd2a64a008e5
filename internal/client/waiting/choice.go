package waiting

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/quorum"
)

// Choice is the callers of this process for one of some keys, the first to be had: first come, first served. In the
// line for each key it has one place, for all of its callers. A turn in that line, and a lock passed on there, goes
// to its first idle caller. While none is idle, its places act for no line.
type Choice struct {
	name   string
	of     *Lines // its registry
	places []*place
	end    context.CancelFunc // of the places
	refs   int                // callers; guarded by Lines.choices

	idle atomic.Int64 // waiting callers with neither a turn nor a lock
	mu   sync.Mutex   // taken after a shard's, before a lease's
	list []*Chooser   // in the order of their arrival
}

// choices is the choices of a process, by name.
type choices struct {
	mu    sync.Mutex // taken before a shard's
	known map[string]*Choice
	n     atomic.Int64 // of known
	stand atomic.Int64 // places, counted as waiters beside the callers
}

// Seat is one key of a choice: where it is waited for, and how the attempt before has ended.
type Seat struct {
	Lines *Lines
	Key   string
	Whole bool // its lock is not passed on
	Last  Ended
}

// place stands for a choice in the line of one key.
type place struct {
	*Waiter
	choice   *Choice
	at       int           // of the key
	reported chan struct{} // holds one: a caller's turn is over
}

// Chooser is a caller in a choice. Its methods are for the caller's goroutine. Choice.mu protects its fields, but for the bell.
type Chooser struct {
	choice *Choice
	ttl    time.Duration
	busy   bool         // it acts, has been served, or user code has its goroutine
	turn   *place       // the place of its turn, or nil
	handed holding.Hold // a lock passed on to it
	from   *place       // by this place
	bell   *Bell
}

// take takes o out of the list, if it is there.
func (c *Choice) take(o *Chooser) (was bool) {
	at := slices.Index(c.list, o)
	if at >= 0 {
		c.list = slices.Delete(c.list, at, at+1)
	}
	return at >= 0
}

// NameOf is the name of a choice of keys in their canonical order.
func NameOf(keys []string) string {
	var name []byte
	for _, key := range keys {
		name = strconv.AppendInt(name, int64(len(key)), 10)
		name = append(append(name, ' '), key...)
	}
	return string(name)
}

// IsChosen reports whether callers wait in the choice of keys.
func (l *Lines) IsChosen(keys func() []string) bool {
	if l.choices.n.Load() == 0 {
		return false
	}
	l.choices.mu.Lock()
	defer l.choices.mu.Unlock()
	return l.choices.known[NameOf(keys())] != nil
}

// Choose puts a new caller at the end of the choice of some keys, by the lines of the first.
func Choose(name string, seats []Seat, ttl time.Duration) *Chooser {
	l := seats[0].Lines
	l.choices.mu.Lock()
	defer l.choices.mu.Unlock()
	c := l.choices.known[name]
	isNew := c == nil
	if isNew {
		c = &Choice{name: name, of: l}
		if l.choices.known == nil {
			l.choices.known = make(map[string]*Choice)
		}
		l.choices.known[name] = c
		l.choices.n.Add(1)
	}
	c.refs++
	l.waiting.Add(1)
	o := &Chooser{choice: c, ttl: ttl, bell: NewBell()}
	c.mu.Lock()
	c.list = append(c.list, o)
	c.addIdle(1)
	c.mu.Unlock()
	if isNew {
		c.stand(seats)
	}
	return o
}

// stand puts the choice into all lines.
func (c *Choice) stand(seats []Seat) {
	ctx, end := context.WithCancel(context.Background()) // not of a caller: a panic in its context would end the process
	c.end = end
	places := make([]*place, len(seats))
	for at, s := range seats {
		p := &place{s.Lines.waiter(s.Key, nil), c, at, make(chan struct{}, 1)}
		p.whole, p.place, places[at] = s.Whole, p, p
	}
	c.mu.Lock()
	c.places = places
	c.mu.Unlock()
	for at, s := range seats {
		s.Lines.choices.stand.Add(1)
		s.Lines.waiting.Add(1)
		places[at].stand(s.Last)
		go places[at].run(ctx)
	}
}

// run waits for turns, to be given to callers, and leaves the line when the last caller has left.
func (p *place) run(ctx context.Context) {
	heard := Tries{next: clock.Never}
	for {
		if why, _ := p.Await(ctx.Done(), &heard); why != MayAttempt {
			break
		}
		<-p.reported
	}
	p.lines.choices.stand.Add(-1)
	p.Leave()
}

// addIdle counts idle callers. With the first, and after the last, the lines have other actors. c.mu is held.
func (c *Choice) addIdle(d int64) {
	if n := c.idle.Add(d); n == 0 || n == d {
		for _, p := range c.places {
			p.bell.ring()
		}
	}
}

// serve has give give a turn or a lock to the first idle caller, busy from then on, and reports whether it did. All of it
// is one step: a caller that leaves comes before it, or finds what it was given.
func (c *Choice) serve(give func(o *Chooser) bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.list, func(o *Chooser) bool { return !o.busy })
	if at < 0 {
		return false
	}
	o := c.list[at]
	if !give(o) {
		return false
	}
	o.busy = true
	c.addIdle(-1)
	o.bell.ring()
	return true
}

// give gives a turn of p to the first idle caller, and reports whether there is one. The shard is locked.
func (p *place) give() bool {
	return p.choice.serve(func(o *Chooser) bool {
		o.turn = p
		return true
	})
}

// pass passes the lock of h on to the first idle caller. The shard is locked.
func (p *place) pass(h holding.Hold, now clock.Instant) (until clock.Instant, ok bool) {
	c := p.choice
	ok = c.serve(func(o *Chooser) (ok bool) {
		var next holding.Hold
		next, until, ok = h.Pass(now, o.ttl)
		if ok {
			c.take(o)
			o.handed, o.from = next, p
		}
		return ok
	})
	return until, ok
}

// share is how many of its idle callers there are for each key.
func (c *Choice) share() int { return (int(c.idle.Load()) + len(c.places) - 1) / max(1, len(c.places)) }

// Everywhere is the index of a turn for all keys.
const Everywhere = -1

// Await waits for the turn of o in the line of a key, and returns the index of the key, or for a lock passed on to o
// there.
func (o *Chooser) Await(done <-chan struct{}, t *Tries) (why Reason, at int, handed holding.Hold) {
	c := o.choice
	cfg := &c.of.cfg
	for {
		why = c.of.over(done)
		if why != none {
			o.Hear(t)
			return why, 0, handed
		}
		c.mu.Lock()
		handed, o.handed = o.handed, holding.Hold{}
		turn, from := o.turn, o.from
		c.mu.Unlock()
		if !handed.IsZero() {
			return Handed, from.at, handed
		}
		if turn != nil {
			return MayAttempt, turn.at, handed
		}
		o.bell.sleep(t.next.Sub(cfg.Clock.Now()), t.next, done, cfg.Ending)
		if cfg.Clock.Now() >= t.next {
			if o.asks() {
				return MayAttempt, Everywhere, handed
			}
			if !t.skipped() {
				o.Hear(t)
				return UsedUp, 0, handed
			}
		}
	}
}

// asks reserves the caller for an attempt that is no turn, if it is the first.
func (o *Chooser) asks() bool {
	c := o.choice
	c.mu.Lock()
	defer c.mu.Unlock()
	if o.busy || c.list[0] != o {
		return false
	}
	o.busy = true
	c.addIdle(-1)
	return true
}

// Hear gives a caller, in vain so far, the end of the last attempt for one of the keys.
func (o *Chooser) Hear(t *Tries) {
	for _, p := range o.choice.places {
		p.Hear(t)
	}
}

// Attempted reports the end of the attempt of o's turn: h is its result, and denied the nodes with the key.
func (o *Chooser) Attempted(h holding.Hold, denied quorum.Set, err error) {
	o.report(func(p *place) { p.Attempted(h, denied, err) })
}

// report ends a turn, if o has one.
func (o *Chooser) report(end func(p *place)) {
	o.choice.mu.Lock()
	p := o.turn
	o.turn = nil
	o.choice.mu.Unlock()
	if p != nil {
		end(p)
		p.reported <- struct{}{}
	}
}

// WaitOn has o wait on, in its place in the list.
func (o *Chooser) WaitOn() {
	c := o.choice
	c.mu.Lock()
	defer c.mu.Unlock()
	o.busy = false
	c.addIdle(1)
}

// StandAgain has o wait at the end, after a lock was passed on to it in vain.
func (o *Chooser) StandAgain() {
	c := o.choice
	c.mu.Lock()
	defer c.mu.Unlock()
	c.take(o)
	c.list = append(c.list, o)
	o.busy = false
	c.addIdle(1)
}

// Leave takes o out. Its turn ends, and a lock passed on to it and not taken is released. The last caller ends the
// choice.
func (o *Chooser) Leave() {
	c := o.choice
	c.mu.Lock()
	if c.take(o) && !o.busy {
		c.addIdle(-1)
	}
	o.busy = true
	handed, from := o.handed, o.from
	o.handed = holding.Hold{}
	c.mu.Unlock()
	o.report(func(p *place) {
		p.finish(func(l *line, _ *contention.Surroundings) { l.contender.Freed() })
	})
	if !handed.IsZero() {
		from.lines.cfg.Release(handed)
	}
	l := c.of
	l.choices.mu.Lock()
	c.refs--
	if c.refs == 0 {
		delete(l.choices.known, c.name)
		l.choices.n.Add(-1)
		c.end()
	}
	l.choices.mu.Unlock()
	l.waiting.Add(-1)
	l.hasLeft()
}
