package waiting

import (
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/holding"
	"github.com/redlock-go/redlock/internal/rules/contention"
)

// turns is since when this process has wanted a key again and again without a break. A process that releases a lock and
// has it again at once leaves others no turn: a release may travel in one batch with the next acquire of its key, and an
// acquire right behind a release comes before those of processes farther away. No denial shows that others wait then.
// So the process owes them:
//
//   - a look: its next caller goes through the queue, as if the key were contended. The first is due after finest, each
//     other one after a pause twice as long, lookEvery at most.
//   - a gap, after contention.GapAfter: it leaves the key free for a while, for callers in no queue.
//
// A break is measured: from the end of a lock to the instant from which the caller of the next one wanted it. So neither
// the length of the work counts nor that of the wait, and of shared locks the union of their times. All of it
// is noted in one place, where a lock ends (Had), and outlives the desks of the key.
//
// A key has one of the four cells of its bucket: its own, or else the one noted longest ago, unless that is in a run too.
// Where a key finds none, a run of its bucket gives its cell up at its next look: so keys beyond the number of cells leave
// others turns too, but no gaps. No lock protects a cell, and what it says is advice: where two callers change it at once,
// a run is missed, or is taken for that of another key.
type turns struct {
	looks   [2]atomic.Int64 // of any key: none before; where a caller waited for the release, and where none did
	buckets [256]bucket
}

type bucket struct {
	runs  [4]run
	short atomic.Bool // a key has found no cell
}

// run is the present run of a key.
type run struct {
	hash   atomic.Uint64 // of the key
	latest atomic.Int64  // when its last lock ended
	begun  atomic.Int64  // since when there was no break and no gap
	look   atomic.Int64  // when the next look is due
	pause  atomic.Int64  // between the last look and this one
	hold   atomic.Int64  // how long holders have it, of late at most
	owes   atomic.Uint32 // until a caller stands in line
}

// due is what a process has to leave to others.
type due uint32

const (
	nothing due = iota
	aLook
	aGap
)

const (
	finest    = 4 * time.Millisecond // how exactly breaks are measured
	lookEvery = 500 * time.Millisecond

	// A look costs as much CPU as some pairs on free keys, and all keys together have one in so long. Behind a release
	// that a caller waits for others may come first without it.
	looksAwaited = 20 * time.Millisecond
	looksElse    = time.Millisecond
)

// bucket is that of a key.
func (all *turns) bucket(hash uint64) *bucket {
	return &all.buckets[hash/shards%uint64(len(all.buckets))]
}

// of is the run of a key, or one whose cell it may have.
func (b *bucket) of(hash uint64) (r *run, its bool) {
	r = &b.runs[0]
	for i := range b.runs {
		c := &b.runs[i]
		if c.hash.Load() == hash {
			return c, true
		}
		if c.latest.Load() < r.latest.Load() {
			r = c
		}
	}
	return r, false
}

// note notes a turn with a lock on a key, ending now. It returns what the process owes from now on, and how long
// holders have the key. awaited: a caller waits for the release.
func (all *turns) note(hash uint64, t holding.Turn, now clock.Instant, awaited bool) (d due, hold time.Duration) {
	b := all.bucket(hash)
	r, its := b.of(hash)
	latest := clock.Instant(r.latest.Load())
	hold = now.Sub(t.Granted)
	switch {
	case !its && now.Sub(latest) < contention.GapLength:
		b.short.Store(true)
		return nothing, 0
	case !its || t.Wanted.Sub(latest) >= contention.GapLength:
		begun := t.Wanted
		if t.OfAny {
			begun = begun.Add(-phase(hash))
		}
		r.hash.Store(hash)
		r.begun.Store(int64(begun))
		r.look.Store(int64(t.Wanted.Add(finest)))
		r.pause.Store(int64(finest))
		r.hold.Store(0)
		r.owes.Store(uint32(nothing))
	case now.Sub(latest) < finest: // a write costs more than all the rest
		return nothing, 0
	}
	hold = max(hold, time.Duration(r.hold.Load()/8*7))
	r.hold.Store(int64(hold))
	r.latest.Store(int64(now))
	begun, look := r.begun.Load(), r.look.Load()
	switch {
	case now.Sub(clock.Instant(begun)) >= contention.GapAfter(hold, t.Shared):
		if r.begun.CompareAndSwap(begun, int64(now.Add(contention.GapLength))) {
			d = aGap
		}
	case !t.Shared && int64(now) >= look && all.mayLook(now, awaited) && r.look.CompareAndSwap(look, int64(now)+r.pause.Load()):
		d = aLook
		r.pause.Store(min(2*r.pause.Load(), int64(lookEvery)))
		if b.short.Swap(false) {
			r.latest.Store(int64(now.Add(-contention.GapLength)))
		}
	}
	if d != nothing {
		r.owes.Store(uint32(d))
	}
	return d, hold
}

// phase is by how much earlier the first gap of a key comes. The keys of a choice are wanted from the same moment on. Were
// they left free at the same time, callers for any of them would find none.
func phase(hash uint64) time.Duration {
	const parts = 1 << 10
	return time.Duration(hash>>32%parts) * (contention.GapInterval - 2*contention.GapLength) / parts
}

// mayLook reports whether a key may be looked at now, after those of others.
func (all *turns) mayLook(now clock.Instant, awaited bool) bool {
	next, pause := &all.looks[1], looksElse
	if awaited {
		next, pause = &all.looks[0], looksAwaited
	}
	at := next.Load()
	return int64(now) >= at && next.CompareAndSwap(at, int64(now.Add(pause)))
}

// owing is the run of a key with something due, or nil. After two breaks others have had their turn.
func (all *turns) owing(hash uint64, c clock.Clock) *run {
	r, its := all.bucket(hash).of(hash)
	if its && r.owes.Load() != uint32(nothing) && c.Now().Sub(clock.Instant(r.latest.Load())) < 2*contention.GapLength {
		return r
	}
	return nil
}

// take takes over what is due, for the desk of the key.
func (all *turns) take(hash uint64, c clock.Clock) (d due, hold time.Duration) {
	if r := all.owing(hash, c); r != nil {
		return due(r.owes.Swap(uint32(nothing))), time.Duration(r.hold.Load())
	}
	return nothing, 0
}

// Had notes a turn with a lock on key, ending now. The next caller for key may owe others a look or a gap.
func (l *Lines) Had(key string, t holding.Turn, now clock.Instant, awaited bool) {
	if !t.Waits && !t.Shared { // a caller of TryAcquire stands in no queue
		return
	}
	hash := l.hash(key)
	if d, _ := l.turns.note(hash, t, now, awaited); d != nothing && l.known.Load() > 0 {
		l.at(key, func(k *desk) { k.owe(l.turns.take(hash, l.cfg.Clock)) })
	}
}

// owe has the next caller go through the queue: to look for waiting processes there, or to leave a gap.
func (d *desk) owe(o due, hold time.Duration) {
	now := d.lines.cfg.Clock.Now()
	switch o {
	case aGap:
		d.Due(now, hold)
		fallthrough
	case aLook:
		if d.first == nil {
			d.known = max(d.known, now.Add(leastAsk))
			d.Queues(now.Add(leastAsk))
		}
	}
}
