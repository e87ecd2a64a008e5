package waiting

import (
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/contention"
)

// runs finds the keys that this process has again and again without a break.
//
//   - Holders that share a key and overlap never leave it free, and are in no line and no queue. So a gap is due for
//     exclusive callers without a gate: other libraries, and TryAcquire.
//   - A release that no caller waits for may be sent in one batch with the next acquire of the key. Then no other process
//     ever finds the key free. So a look at the queue is due, for the processes that wait there.
//
// A key has one of the four cells of its bucket: its own, or else the one noted longest ago, unless that is in a run too.
// A long run gives its cell up, so more keys than cells have their turns. No lock protects a cell, and what it says is
// advice: where two callers change it at once, a run is missed, or is taken for that of another key.
type runs [256][4]run

type run struct {
	hash   atomic.Uint64 // of the key
	begun  atomic.Int64  // since when there was no break
	latest atomic.Int64
}

// isSteady notes a grant or a release of a key, and reports whether its run is so long. Then another begins.
func (all *runs) isSteady(hash uint64, now clock.Instant, long time.Duration) bool {
	bucket := &all[hash/shards%uint64(len(all))]
	r := &bucket[0]
	for i := range bucket {
		if c := &bucket[i]; c.hash.Load() == hash {
			r = c
			break
		} else if c.latest.Load() < r.latest.Load() {
			r = c
		}
	}
	since := now.Sub(clock.Instant(r.latest.Load()))
	fresh := since < contention.GapLength
	if r.hash.Load() != hash {
		if fresh {
			return false
		}
		r.hash.Store(hash)
	}
	begun := clock.Instant(r.begun.Load())
	switch {
	case !fresh:
		r.begun.Store(int64(now))
	case now.Sub(begun) >= long:
		r.latest.Store(0)
		return r.begun.CompareAndSwap(int64(begun), int64(now))
	case since < finest: // a write costs more than all the rest
		return false
	}
	r.latest.Store(int64(now))
	return false
}

// finest is how exactly breaks are measured.
const finest = 4 * time.Millisecond

// lookEvery is how often a process that has a lock again and again, in no line, looks at the queue of others.
const lookEvery = 500 * time.Millisecond

// Left notes that key is released now, that no caller waits for that, and that its holder was one who waits for locks: the
// next may be such a caller too, and its acquire may be sent in the same batch, again and again. Then the key is free at
// no time, and no refusal shows that others wait. So now and then the next caller goes through the queue, as if the key
// were contended.
func (l *Lines) Left(key string, now clock.Instant) {
	if l.left.isSteady(l.hash(key), now, lookEvery) && l.CanBeWoken() {
		l.look(key, true)
	}
}

// look has the next caller for key go through the queue: to look who waits there, or to leave a gap.
func (l *Lines) look(key string, brief bool) {
	s := l.lock(key)
	defer l.unlock(s)
	now := l.cfg.Clock.Now()
	d, isNew := l.deskFor(s, key)
	switch {
	case !brief:
		d.Steady(now)
	case isNew:
		d.brief = true
		d.Queues(now.Add(leastAsk))
	default:
		return
	}
	if d.first == nil && d.isIdle() {
		d.settle(now)
	}
}
