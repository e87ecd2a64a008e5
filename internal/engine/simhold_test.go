package engine

import (
	"math"
	"slices"
	"time"

	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/renewal"
	"github.com/redlock-go/redlock/quorum"
)

// holder is one user of a client. It acquires one key or several as one lock, runs a
// function while the lock is kept alive, and releases it; as Do, AcquireAll, Attach and
// ReleaseAsync have it.
type holder struct {
	client *client
	world  *world

	locks    []*lock // one for each key, all with the token of the first
	ttl      time.Duration
	validity *validity
	shrunk   time.Duration // when its end was last brought forward
	function int           // counts functions
	runs     bool          // the function does
	shorter  bool          // the function may have extended the lock by less than ttl
	kept     *kept         // or nil
	joints   []*joint      // operations under way

	proposal fencing.Proposal
	block    Op // with the tokens of the attempt, which are those of all keys
	tries    int
}

func newHolder(c *client) *holder { return &holder{client: c, world: c.world} }

// next begins an attempt.
func (h *holder) next() {
	w, c := h.world, h.client
	if w.ending || c.dead || h.locks != nil {
		return
	}
	h.ttl = w.between(renewal.MinTTL, 200*time.Millisecond)
	switch {
	case w.rules.brief:
		h.ttl = w.between(renewal.MinTTL, longestHeld)
	case w.chance(20):
		h.ttl *= 5
	}
	h.ttl = h.ttl.Truncate(time.Millisecond)
	n := 1
	if w.chance(50) {
		n += w.IntN(w.check.keys + heldKeys)
	}
	keys := w.Perm(w.check.keys + heldKeys)[:n]
	slices.Sort(keys)
	h.validity, h.shorter = &validity{}, false
	for _, key := range keys {
		l := w.check.newLock(c, key, h.ttl)
		l.validity, l.loose = h.validity, true
		h.locks = append(h.locks, l)
	}
	for _, l := range h.locks {
		l.set = h.locks
	}
	h.client.propose(&h.block, &h.proposal)
	h.do(Acquire, h.ttl, h.acquired)
}

// acquired is the end of an attempt. Where one key is refused, the others are released.
func (h *holder) acquired(j *joint, err error) {
	w, e := h.world, h.client.engine
	until := j.calls[0].Until
	if err == nil && h.client.clock.Now() >= until {
		err = ErrExpired
	}
	switch {
	case err != nil && !j.unsent:
		for i, c := range j.calls {
			if !c.Over() && c.Err == nil {
				j.released(i)
				e.Forgo(&c.Op, err)
			}
		}
	case err == nil:
		h.validity.Validity = renewal.Begin(h.ttl, until)
		absent := ^uint64(0)
		for i, l := range h.locks {
			absent &= j.calls[i].Absent
			l.loose = false
			w.check.tokened(l, j.calls[i].Block, j.asked)
			w.check.acquired(l)
		}
		for _, l := range h.locks {
			l.absent = absent
		}
		w.check.sets += min(1, len(h.locks)-1)
		h.run()
		return
	}
	for _, l := range h.locks {
		l.over = true
	}
	again := false
	for _, c := range j.calls {
		if err != nil && !j.unsent && !c.Over() {
			one, _ := h.client.learn(&c.Op, &h.proposal, c.Err)
			again = again || one
		}
	}
	if h.tries++; !again || h.tries > fenceTries {
		h.proposal, h.tries = fencing.Proposal{}, 0
	}
	h.pause()
}

// pause waits before the next attempt.
func (h *holder) pause() {
	h.locks, h.validity, h.kept, h.runs = nil, nil, nil, false
	h.client.after(h.world.between(0, 5*time.Millisecond), h.next)
}

// run runs a function, as a rule while the lock is kept alive.
func (h *holder) run() {
	w, c := h.world, h.client
	if c.dead {
		h.forget()
		return
	}
	h.function++
	h.runs = true
	if w.chance(90) && h.ttl >= renewal.MinTTL {
		limit := time.Duration(math.MaxInt64)
		if w.chance(15) {
			limit = c.clock.Now() + w.between(0, h.ttl*2)
		}
		w.note("keep", c.index, len(h.locks), h.locks[0].number)
		w.check.kept++
		h.kept = c.keeper.add(h, limit)
	}
	d := w.between(0, h.ttl/2)
	if w.chance(50) {
		d = w.between(0, h.ttl*5)
	}
	h.later(d, h.finish)
	for range w.IntN(3 * len(h.locks)) {
		h.later(w.between(0, d/2+1), h.act)
	}
}

// later does something in d, if the function still runs.
func (h *holder) later(d time.Duration, f func()) {
	function := h.function
	h.client.after(d, func() {
		if h.function == function && h.runs && !h.client.dead {
			f()
		}
	})
}

// act is something that the function does.
func (h *holder) act() {
	w, c := h.world, h.client
	alive := c.clock.Now() < h.validity.until()
	switch n := w.IntN(3); {
	case n == 0:
		h.see(h.locks[w.IntN(len(h.locks))])
	case n == 1 && alive:
		ttl := h.ttl
		if w.chance(50) {
			ttl = w.between(MinTTL, h.ttl+1)
			h.shorter = true
		}
		h.extend(ttl.Truncate(time.Millisecond))
	case h.kept != nil && h.kept.live && !alive: // it asks its context, which looks at the clock
		c.keeper.end(h.kept, renewal.Expire)
	}
}

// extend is an extend by the function itself.
func (h *holder) extend(ttl time.Duration) {
	v, keeper, kept := h.validity, h.client.keeper, h.kept
	x := v.Extending(ttl, quorum.Until(h.client.clock.Now(), ttl))
	h.believe()
	for _, l := range h.locks {
		l.extends = append(l.extends, h.world.now())
	}
	keeper.review(kept, false)
	h.do(Extend, ttl, func(j *joint, err error) {
		result := resultOf(err)
		if j.unsent {
			result = renewal.Unsent
		}
		v.Extended(x, result)
		renewal.Drop(x)
		if h.validity != v {
			return
		}
		h.extended(result)
		keeper.review(kept, result == renewal.Won)
	})
}

// ended is told by the keeper that the lock is not kept alive any more.
func (h *holder) ended(why renewal.Action) {
	w := h.world
	w.note("ended", h.client.index, int(why), h.locks[0].number)
	if why == renewal.Expire || why == renewal.Lose {
		w.check.loses(h)
	}
	if why != renewal.Stop {
		h.later(w.between(0, 2*time.Millisecond), h.finish)
	}
}

// finish is the end of the function.
func (h *holder) finish() {
	w, c := h.world, h.client
	h.runs = false
	if w.chance(20) && h.handOver() {
		return
	}
	if w.chance(10) {
		h.stop()
		h.forget()
		return
	}
	// The lease hears of the release before the keeper does, and the queue last.
	h.validity.releases++
	h.believe()
	for _, l := range h.locks {
		l.holding, l.over = false, true
	}
	if w.chance(50) {
		c.after(w.between(0, 500*time.Microsecond), h.release)
	} else {
		h.release()
	}
}

func (h *holder) stop() {
	if h.kept != nil {
		h.client.keeper.end(h.kept, renewal.Stop)
	}
}

// forget sends no release.
func (h *holder) forget() {
	for _, l := range h.locks {
		l.forgotten = true
	}
	h.pause()
}

// release is Release, or ReleaseAsync.
func (h *holder) release() {
	w, c := h.world, h.client
	h.stop()
	switch {
	case c.dead:
		h.forget()
		return
	case w.chance(60):
		locks, v := h.locks, h.validity
		h.do(Release, 0, func(j *joint, err error) {
			for _, l := range locks {
				if j.unsent || err == ErrClosed {
					l.forgotten = true
				}
			}
			if j.unsent {
				v.releases--
			}
			h.pause()
		})
		return
	}
	w.check.discards++
	for _, l := range h.locks {
		call := h.call(l, Release, 0)
		w.note("discard", c.index, 0, l.number)
		w.check.submitted(c, l, Release)
		c.engine.Discard(call)
	}
	c.engine.Drive()
	h.pause()
}

// began is when the TTL of a lock was asked for.
func (v *validity) began() time.Duration { return v.Until() - v.TTL() + quorum.Drift(v.TTL()) }

// believe has the holder count on what it may.
func (h *holder) believe() {
	before := h.locks[0].until
	for _, l := range h.locks {
		l.believe()
	}
	if h.locks[0].until < before {
		h.shrunk = h.world.now()
	}
}

// extended notes that an extend has its result.
func (h *holder) extended(r renewal.Result) {
	h.believe()
	for _, l := range h.locks {
		l.prolonged(r)
	}
}
