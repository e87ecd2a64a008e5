package holding

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
	"github.com/redlock-go/redlock/internal/rules/fencing"
	"github.com/redlock-go/redlock/internal/rules/renewal"
	"github.com/redlock-go/redlock/quorum"
)

// Config configures a Keeper.
type Config struct {
	engine.Env
	Home *engine.Engine // of the locks in one group
	Tail string         // follows the token in the value at the keys

	// Gone learns of each lock found to be lost by the keeper.
	Gone func(s *State)

	// Hooks are called by the goroutine of callbacks; they may be nil.
	OnAttempt  func(ctx context.Context, kind engine.Kind, key string, took time.Duration, votes quorum.Tally, err error)
	OnLockLost func(key string, err error)
}

// Keeper keeps the locks of a client alive: it renews them, and reports their end. One goroutine calls Turn. No lock
// has a goroutine or a timer of its own, and no renewal allocates.
//
// No lock is renewed after a stop: an entry is taken out of the schedule, and renewals are put into the engine's
// queue, with mu held. Results come from the driver. It appends them to the inbox and does nothing else.
//
// Lock order: mu, then a lease's or an engine's queue's. The inbox's lock is taken alone,
// or under the driver lock or mu.
type Keeper struct {
	cfg Config

	mu       sync.Mutex
	schedule renewal.Schedule[*entry]
	failing  map[*entry]error // why the last renewal failed
	news     []func()         // calls of hooks, to be announced without mu
	gone     []State          // lost locks, to be reported without mu
	lost     uint64
	closed   bool

	expiries expiries // not under mu

	inbox inbox
	spare sync.Pool // of *renewing

	driven []*engine.Engine // in this turn, of its goroutine
}

// entry is a lock kept alive, a part of its Kept.
type entry struct {
	renewal.Lock
	lease *lease
	life  uint64
	kept  *Kept // learns the reason of the end
	place int32 // in the schedule
}

// SetPlace implements renewal.Entry.
func (e *entry) SetPlace(place int) { e.place = int32(place) }

// Place implements renewal.Entry.
func (e *entry) Place() int { return int(e.place) }

// hold is the entry's lock.
func (e *entry) hold() Hold { return Hold{lease: e.lease, life: e.life} }

// is reports whether e is still the entry of h.
func (e *entry) is(h Hold) bool {
	return e.lease == h.lease && e.life == h.life && e.place != renewal.Nowhere
}

const (
	// maxRenewals is how many renewals begin in a turn: one batch.
	maxRenewals = 1024
	// syncEvery is how often, at least, the keeper looks for a suspension of the machine.
	syncEvery = 100 * time.Millisecond
)

// noCaller is the context of an attempt without a waiting caller.
var noCaller context.Context

// NewKeeper returns a keeper without locks.
func NewKeeper(cfg Config) *Keeper {
	return &Keeper{cfg: cfg, failing: make(map[*entry]error), expiries: expiries{clock: cfg.Clock}, inbox: inbox{ring: cfg.Ring}}
}

// add begins to keep the lock of c alive. The context of c ends with the entry.
func (k *Keeper) add(c *Kept) error {
	h, e := c.hold, &c.entry
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return engine.ErrClosed
	}
	now := k.cfg.Clock.Now()
	s, ok := h.State()
	switch {
	case !ok || s.Released:
		return engine.ErrNotHeld
	case s.TTL < renewal.MinTTL:
		return engine.WrongArgument("ttl is %v; to keep a lock alive takes %v at least", s.TTL, renewal.MinTTL)
	case now >= s.Until:
		return engine.ErrExpired
	case !h.keep(e):
		return engine.WrongArgument("lock is kept alive already, or was released")
	}
	e.lease, e.life, e.kept = h.lease, h.life, c
	began := min(now, s.Until.Add(quorum.Drift(s.TTL)-s.TTL)) // validity may be longer than the TTL of renewals
	k.schedule.Set(e, e.Start(stateFor(s, true), began))
	k.ringFor(e)
	return nil
}

// ringFor has the next turn come earlier, if it is about e.
func (k *Keeper) ringFor(e *entry) {
	if first, _ := k.schedule.First(); first == e {
		k.cfg.Ring()
	}
}

// Review gives the entry of a lock, if any, a new next event: its holder has extended it, or has found it lost.
func (k *Keeper) Review(h Hold) {
	e := h.kept()
	if e == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := h.State()
	if !ok || s.Released || !e.is(h) {
		return
	}
	delete(k.failing, e)
	k.schedule.Set(e, e.Review(stateFor(s, true), k.cfg.Clock.Now()))
	k.ringFor(e)
}

// Stop ends the renewals of the lock of h. When it returns, no renewal begins any more.
func (k *Keeper) Stop(h Hold) {
	if e := h.kept(); e != nil {
		k.stop(e, h)
	}
}

// Releasing notes that a release of the lock of h is about to be sent: it ends validity, and the renewals. It returns
// the nodes without the key. If not ok, h holds nothing to be released.
func (k *Keeper) Releasing(h Hold) (absent quorum.Set, ok bool) {
	until, absent, e, ok := h.releasing()
	k.expiries.add(until, -1)
	if e != nil {
		k.stop(e, h)
	}
	return absent, ok
}

// ReleasingPlain is Releasing for a lock of one key, not kept alive and not released before. It makes op the lock's release; for any other lock it notes nothing.
func (k *Keeper) ReleasingPlain(h Hold, op *engine.Op) (ok bool) {
	until, ok := h.releasingPlain(op)
	k.expiries.add(until, -1)
	return ok
}

// Unreleased takes back a release never sent.
func (k *Keeper) Unreleased(h Hold) { k.expiries.add(h.unreleased(), 1) }

// Begin begins to hold a lock. The nodes of absent do not have its key.
func (k *Keeper) Begin(s *State, absent quorum.Set, fence fencing.Token) Hold {
	k.expiries.add(s.Until, 1)
	return begin(s, absent, fence)
}

// NoteExtend notes the result of an extension of the lock of h.
func (k *Keeper) NoteExtend(h Hold, calls *engine.Call, r renewal.Result) {
	if before, after := h.noteExtend(renewal.Validity{TTL: calls.TTL, Until: calls.Least()}, r); before != after {
		k.expiries.add(before, -1)
		k.expiries.add(after, 1)
	}
}

// stop ends an entry made for h, unless it has ended.
func (k *Keeper) stop(e *entry, h Hold) {
	k.mu.Lock()
	if e.is(h) {
		k.endEntry(e, engine.ErrStopped)
	}
	k.unlock()
}

// expire ends an entry if its validity is over.
func (k *Keeper) expire(e *entry, h Hold) {
	now := k.cfg.Clock.Now()
	k.mu.Lock()
	if s, ok := h.State(); e.is(h) && ok && now >= s.Until {
		k.endEntry(e, k.causeOf(e, &s))
	}
	k.unlock()
}

// Close ends all entries.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	for k.schedule.Len() > 0 {
		e, _ := k.schedule.First()
		k.endEntry(e, engine.ErrClosed)
	}
	k.unlock()
}

// Count is how many locks have validity left, how many are kept alive, and how many were lost while kept alive.
func (k *Keeper) Count() (held, kept int, lost uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.expiries.count(), k.schedule.Len(), k.lost
}

// Turn does what is due and returns the pause to the next turn.
func (k *Keeper) Turn() (pause time.Duration) {
	k.mu.Lock()
	now := k.cfg.Clock.Now()
	for r := k.inbox.take(); r != nil; {
		next := r.next
		k.result(r, now)
		r = next
	}
	k.driven = append(k.driven[:0], k.cfg.Home)
	for n := 0; n < maxRenewals && k.schedule.Len() > 0; n++ {
		e, at := k.schedule.First()
		if at > now {
			break
		}
		k.event(e, now)
	}
	pause = clock.Forever
	if k.schedule.Len() > 0 {
		_, at := k.schedule.First()
		pause = max(0, min(at.Sub(now), syncEvery))
	}
	k.unlock()
	for _, e := range k.driven {
		e.Drive()
	}
	return pause
}

// event does what is due for an entry, and gives it its next event.
func (k *Keeper) event(e *entry, now clock.Instant) {
	s, ok := e.hold().State()
	if action, next := e.Event(stateFor(s, ok), now); action == renewal.Renew {
		k.renew(e, &s, now)
	} else {
		k.do(e, &s, action, next)
	}
}

// do waits for the next event of an entry, or ends it.
func (k *Keeper) do(e *entry, s *State, a renewal.Action, next clock.Instant) {
	switch a {
	case renewal.Wait:
		k.schedule.Set(e, next)
	case renewal.Stop: // and about to be stopped
		k.endEntry(e, engine.ErrStopped)
	case renewal.Expire:
		k.endEntry(e, k.causeOf(e, s))
	case renewal.Lose:
		k.endEntry(e, engine.ErrNotHeld)
	}
}

// causeOf is why validity has come to its end. Validity is 0 after a release, until its caller stops the entry, and
// after the holder's own extension has found the lock lost.
func (k *Keeper) causeOf(e *entry, s *State) error {
	switch err := k.failing[e]; {
	case s.Released:
		return engine.ErrStopped
	case s.Until == 0:
		return engine.ErrNotHeld
	case err != nil:
		return err
	}
	return engine.ErrExpired
}

// endEntry ends an entry, and its context: that runs no user code. mu is held: Kept.Err relies on it, all ends are seen.
func (k *Keeper) endEntry(e *entry, cause error) {
	k.schedule.Remove(e)
	delete(k.failing, e)
	h := e.hold()
	s, _ := h.State()
	h.unkeep()
	e.kept.ended(cause)
	if cause != engine.ErrStopped && cause != engine.ErrClosed {
		k.gone = append(k.gone, s)
		k.lost++
		if f, key := k.cfg.OnLockLost, s.Key; h.ReportLoss() && f != nil {
			k.news = append(k.news, func() { f(key, cause) })
		}
	}
	e.End()
	e.lease, e.kept = nil, nil
}

// unlock gives mu up, and reports what was found under it. The goroutine of callbacks calls the hooks.
func (k *Keeper) unlock() {
	news, gone := k.news, k.gone
	k.news, k.gone = nil, nil
	k.mu.Unlock()
	for i := range gone {
		k.cfg.Gone(&gone[i])
	}
	if len(news) > 0 {
		k.cfg.Home.Announce(news)
	}
}

// renew begins a renewal.
func (k *Keeper) renew(e *entry, s *State, now clock.Instant) {
	r, _ := k.spare.Get().(*renewing)
	if r == nil {
		r = &renewing{inbox: &k.inbox}
	}
	if err := r.prepare(k.cfg.Home, s, s.Tail(k.cfg.Tail), now); err != nil { // of an attached lock, with a TTL above MaxTTL
		k.endEntry(e, err)
		return
	}
	h := e.hold()
	seq, next := e.Begin(stateFor(*s, true))
	r.entry, r.seq, r.hold, r.began = e, seq, h, now
	h.Bind(r.calls, s.Until)
	r.calls.Each(func(c *engine.Call) {
		if !slices.Contains(k.driven, c.On) {
			k.driven = append(k.driven, c.On)
		}
	})
	_ = r.calls.Enqueue() // ErrClosed: Close has ended, or will end, all entries
	k.schedule.Set(e, next)
}

// result notes the result of a renewal. mu is held.
func (k *Keeper) result(r *renewing, now clock.Instant) {
	by, err := r.calls.Result()
	r.calls.Note(err)
	result := ResultOf(err)
	k.NoteExtend(r.hold, r.calls, result)
	err = by.Explain(err)
	if e := r.entry; e.is(r.hold) && e.Awaits(r.seq) {
		s, ok := r.hold.State()
		switch action, next := e.Result(result, stateFor(s, ok), r.began, now, rand.Float64()); {
		case action == renewal.Wait && err == engine.ErrClosed:
			k.endEntry(e, err)
		default:
			delete(k.failing, e)
			if err != nil {
				k.failing[e] = err
			}
			k.do(e, &s, action, next)
		}
	}
	if f := k.cfg.OnAttempt; f != nil {
		key, took, votes := string(r.calls.Key), by.Took(k.cfg.Clock.Now()), by.Tally
		k.news = append(k.news, func() { f(noCaller, engine.Extend, key, took, votes, err) })
	}
	r.calls.Free()
	r.calls, r.entry, r.hold, r.next = nil, nil, Hold{}, nil
	k.spare.Put(r)
}
