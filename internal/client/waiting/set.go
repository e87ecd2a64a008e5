package waiting

import (
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/rules/contention"
	"github.com/redlock-go/redlock/quorum"
)

// A turn of a set is kept for keepMost at most, and for keepLeast at least: for some round trips, and sections no
// longer than these.
const (
	keepMost  = 1200 * time.Millisecond
	keepLeast = 10 * time.Millisecond

	// fairFor is for how long a set asks for its keys only with a turn in each of its lines. Of 20 callers for three
	// of ten keys one waited for 1.6 s at most, and for 4.7 s where each asked at any turn.
	fairFor = 100 * time.Millisecond
)

// turns looks at the lines of a set, and decides whether it is to ask for its keys. It asks if something is new, and it
// has a turn in each line or has waited for a while. It also asks if it has kept its last turn for long enough. Else it
// keeps its new turns.
func (d *Demand) turns(t *Tries) Reason {
	now := d.lines.cfg.Clock.Now()
	var news, some, lacks, stands, left bool
	d.each(func(p *place, k *desk) {
		if p.hasTurn() {
			p.stage = newTurn
		}
		if p.stage == out {
			t.Hear(k.news(now, t.Began, 0, p.shared))
			p.desk, left = nil, true
			return
		}
		free := k.FreeUntil(now)
		isFree := free != 0 && (k.IsAlone() || p.stood <= free.Add(-contention.GapLength)) // a set that came later would have the lock all along, beside other processes
		news = news || p.stage == newTurn || isFree && free != p.free
		stands = true
		if isFree {
			p.free = free
		}
		if p.stage == newTurn || k.keeper == p || isFree {
			some = true
		} else {
			lacks = true
		}
	})
	switch {
	case left && !stands:
		return MayAttempt
	case !news:
		return none
	case !some || !lacks || now >= t.Began.Add(fairFor):
		return MayAttempt
	}
	d.each(func(p *place, k *desk) {
		if p.stage == newTurn { // a turn that has come since is new in the next round
			k.keepTurn(p)
			k.advance()
		}
	})
	return none
}

// resume has a set use its kept turns for the attempt it makes: others have them only afterwards.
func (d *Demand) resume() {
	d.each(func(p *place, k *desk) {
		if k.keeper == p && k.turns == 0 {
			k.begin(p)
		}
	})
}

// Missed reports the end of an attempt of a set that has not won: the nodes of denied have a key. The turn for
// a key that was not denied is kept. It reports whether the set waits for some turn.
func (d *Demand) Missed(denied func(at int) quorum.Set) (waits bool) {
	d.end(true)
	d.each(func(p *place, k *desk) {
		if p.stage == out {
			p.desk = nil
			return
		}
		if p.stage == newTurn && denied(int(p.at)) == 0 {
			p.had++
		}
		k.missed(p, denied(int(p.at)))
		waits = waits || p.stage != out && k.keeper != p
	})
	return waits
}

// Left takes a set out of its lines: it has the lock of h; or no holder has denied it, and it must not stand before
// others. How a vain attempt ended says nothing to the lines: the caller wants other keys too.
func (d *Demand) Left(h holding.Hold) {
	held, won := h.State()
	d.end(false)
	d.each(func(p *place, k *desk) {
		switch {
		case won && p.hasTurn() && k.keeper != p: // where it has kept its turn the process stays first in its queue
			k.attempted(p, true, held.Until, quorum.Tally{}, nil)
		case p.stage != out:
			k.out(p)
		}
		p.desk = nil
	})
}

// MayCollect reports whether a set would take its keys one by one in no more time than it has stood in line: it has had
// each so often in a turn of its own. None has one holder for long. A line that it has left was its own for a while.
func (d *Demand) MayCollect() bool {
	if !d.Stands() {
		return false
	}
	spans := 0.0 // so many times as long
	for i := range d.places {
		if p := &d.places[i]; p.desk != nil {
			spans += 1 / float64(p.had)
		}
	}
	return spans <= 1
}

// Stands reports whether it stands in some line, or had a turn there until now.
func (d *Demand) Stands() bool {
	for i := range d.places {
		if d.places[i].desk != nil {
			return true
		}
	}
	return false
}

// keptTurn is a turn kept by a set, and the line with it.
type keptTurn struct {
	keeper *place        // of the set; nil: no turn is kept
	keeps  clock.Instant // until then
	kept   clock.Instant // until when sets may keep turns; 0: the lock has had a holder since
}

// keep is until when a set keeps a turn for which it has waited. All sets together keep the lock free for keepMost, and
// again only once it had a holder, or was left to others for as long.
func (d *desk) keep(now clock.Instant, waited time.Duration) (until clock.Instant) {
	if d.kept == 0 || now >= d.kept.Add(keepMost) {
		d.kept = now.Add(keepMost)
	}
	return min(now.Add(max(keepLeast, waited)), d.kept)
}

// keepTurn has a set keep its turn, unless the process has asked before its own. One set keeps the turn of a line: one
// that stands before it, and asked when the turn came, has it from then on.
func (d *desk) keepTurn(p *place) {
	around := d.lines.around(d, d.lines.cfg.Clock.Now())
	until := d.keeps
	if d.keeper != p {
		until = d.keep(around.Now, around.Now.Sub(p.stood))
	}
	d.endTurn(p)
	if d.Keep(&around, until) {
		d.keeper, d.keeps = p, until
	}
}

// missed notes an attempt of a set that has not won: the nodes of denied have the key.
func (d *desk) missed(p *place, denied quorum.Set) {
	switch around := d.lines.around(d, d.lines.cfg.Clock.Now()); {
	case denied != 0 && (p.hasTurn() || d.keeper == p):
		d.endTurn(p)
		d.missedBy(around.Now, engine.ErrTaken, p.shared)
		d.Denied(&around, denied)
	case p.stage == inTurn && d.keeper == p: // it has used a turn that it keeps
		p.stage = inLine
		d.turns--
		d.Polled(&around)
	case p.hasTurn():
		d.keepTurn(p)
	case d.first == p && d.isIdle():
		d.Polled(&around)
	}
	d.advance()
}
