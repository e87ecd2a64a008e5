package waiting

import (
	"sync/atomic"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/rules/contention"
)

// runs finds the keys that this process shares again and again without a break. Holders that overlap never leave such a
// key free, and in no line and no queue. So a gap is due for exclusive callers without a gate: other libraries, and
// TryAcquire. Each cell is of one key at a time; it is advice.
type runs [256]run

type run struct {
	hash    atomic.Uint64 // of the key
	begun   atomic.Int64  // since when there was no break
	latest  atomic.Int64
	granted atomic.Int64
}

// isSteady notes a grant, and reports whether the run is long. Then another begins.
func (all *runs) isSteady(hash uint64, now clock.Instant) bool {
	r := &all[hash/shards%uint64(len(all))]
	fresh := now.Sub(clock.Instant(r.latest.Load())) < contention.GapLength
	if r.hash.Load() != hash {
		if fresh {
			return false
		}
		r.hash.Store(hash)
	}
	r.latest.Store(int64(now))
	if !fresh {
		r.begun.Store(int64(now))
		r.granted.Store(0)
		return false
	}
	if r.granted.Add(1) < leastRun || now.Sub(clock.Instant(r.begun.Load())) < contention.GapInterval {
		return false
	}
	r.granted.Store(0)
	return r.begun.Swap(int64(now)) < int64(now)
}

// leastRun is the least number of grants in a long run.
const leastRun = 8

// steady has the next caller for key leave a gap.
func (l *Lines) steady(key string) {
	s := l.lock(key)
	defer l.unlock(s)
	d, _ := l.deskFor(s, key)
	d.Steady(l.cfg.Clock.Now())
	if d.first == nil && d.isIdle() {
		d.settle(l.cfg.Clock.Now())
	}
}
