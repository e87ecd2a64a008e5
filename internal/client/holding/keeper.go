package holding

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlock-go/redlock/internal/base/clock"
	"github.com/redlock-go/redlock/internal/client/engine"
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
	OnAttempt  func(engine.Attempt)
	OnLockLost func(key string, err error)
}

// Keeper keeps the locks of a client alive: it renews them, and reports their end. One goroutine calls Turn. No lock
// has a goroutine or a timer of its own, and no renewal allocates.
//
// No lock is renewed after a stop: it is taken out of the schedule, and renewals are put into the engine's queue, with
// mu held. Results come from the driver. It adds them to results and does nothing else.
//
// Lock order: mu, then a lease's or an engine's queue's.
type Keeper struct {
	cfg Config

	mu       sync.Mutex
	schedule renewal.Schedule[*entry] // of the locks kept alive
	news     []engine.Event           // for hooks, to be reported without mu
	gone     []State                  // lost locks, to be reported without mu
	lost     uint64
	closed   bool

	// Not under mu.
	expiries expiries
	results  atomic.Pointer[entry] // whose renewal has a result, the last first
	driven   []*engine.Engine      // in this turn, of its goroutine
}

// entry is a Kept as its keeper sees it. The methods are hidden from users of the context.
type entry Kept

// Place implements renewal.Entry.
func (e *entry) Place() *int { return &e.place }

// Complete implements engine.Completion. A driver calls it for each call of a renewal, under its lock.
func (e *entry) Complete(*engine.Op) {
	if e.left.Add(-1) > 0 {
		return
	}
	for {
		next := e.keeper.results.Load()
		e.next = next
		if e.keeper.results.CompareAndSwap(next, e) { // from here on it is the turn's
			if next == nil {
				e.keeper.cfg.Ring()
			}
			return
		}
	}
}

const (
	// maxRenewals is how many renewals begin in a turn: one batch.
	maxRenewals = 1024
	// syncEvery is how often, at least, the keeper looks for a suspension of the machine.
	syncEvery = 100 * time.Millisecond

	leastTimeout = 2 * time.Millisecond // of a renewal
)

// NewKeeper returns a keeper without locks.
func NewKeeper(cfg Config) *Keeper {
	return &Keeper{cfg: cfg, expiries: expiries{clock: cfg.Clock}}
}

// add begins to keep the lock of c alive.
func (k *Keeper) add(c *Kept) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return engine.ErrClosed
	}
	now := k.cfg.Clock.Now()
	s, _ := c.hold.State()
	switch {
	case s.Released:
		return engine.ErrNotHeld
	case s.TTL < renewal.MinTTL:
		return engine.WrongArgument("ttl is %v; to keep a lock alive takes %v at least", s.TTL, renewal.MinTTL)
	case now >= s.Until:
		return engine.ErrExpired
	case !c.hold.keep(c):
		return engine.WrongArgument("lock is kept alive already, or was released")
	}
	began := min(now, s.Until.Add(quorum.Drift(s.TTL)-s.TTL)) // validity may be longer than the TTL of renewals
	k.review(c, &s, began)
	return nil
}

// review gives a lock a new next event, and has the next turn come earlier, if it is about that. mu is held.
func (k *Keeper) review(c *Kept, s *State, since clock.Instant) {
	k.schedule.Set((*entry)(c), c.lock.Review(s.Held, since))
	if first, _ := k.schedule.First(); first == (*entry)(c) {
		k.cfg.Ring()
	}
}

// Review gives the lock of h, if it is kept alive, a new next event: its holder has extended it, or has found it lost.
func (k *Keeper) Review(h Hold) {
	c := h.kept()
	if c == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if s, _ := h.State(); !s.Released && c.place != 0 {
		c.failed = nil
		k.review(c, &s, k.cfg.Clock.Now())
	}
}

// Stop ends the renewals of the lock of h. When it returns, no renewal begins any more.
func (k *Keeper) Stop(h Hold) {
	if c := h.kept(); c != nil {
		k.stop(c)
	}
}

// stop keeps a lock alive no longer, as asked.
func (k *Keeper) stop(c *Kept) {
	k.mu.Lock()
	k.end(c, engine.ErrStopped)
	k.unlock()
}

// expire ends the context of a lock if its validity is over.
func (k *Keeper) expire(c *Kept) {
	now := k.cfg.Clock.Now()
	k.mu.Lock()
	if s, ok := c.hold.State(); ok && now >= s.Until {
		k.end(c, c.causeOf(&s))
	}
	k.unlock()
}

// Close keeps no lock alive any longer.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	for k.schedule.Len() > 0 {
		e, _ := k.schedule.First()
		k.end((*Kept)(e), engine.ErrClosed)
	}
	k.unlock()
}

// Count is how many locks have validity left, how many are kept alive, and how many were lost while kept alive.
func (k *Keeper) Count() (held, kept int, lost uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.expiries.count(), k.schedule.Len(), k.lost
}

// Kept returns the locks kept alive.
func (k *Keeper) Kept() (all []Hold) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for e := range k.schedule.Each {
		all = append(all, e.hold)
	}
	return all
}

// Turn does what is due and returns the pause to the next turn.
func (k *Keeper) Turn() (pause time.Duration) {
	k.mu.Lock()
	now := k.cfg.Clock.Now()
	for e := k.results.Swap(nil); e != nil; {
		next := e.next // before another renewal begins
		e.next = nil   // the user may have the context for long, and so no other's
		k.result((*Kept)(e), now)
		e = next
	}
	k.driven = append(k.driven[:0], k.cfg.Home)
	pause = clock.Forever
	for n := 0; k.schedule.Len() > 0; n++ {
		e, at := k.schedule.First()
		if at > now || n == maxRenewals {
			pause = max(0, min(at.Sub(now), syncEvery))
			break
		}
		c := (*Kept)(e)
		s, _ := c.hold.State()
		action, next := c.lock.Event(s.Held, now)
		k.act(c, &s, action, next, now)
	}
	k.unlock()
	for _, e := range k.driven {
		e.Drive()
	}
	return pause
}

// act has a lock wait for its next event, after the begin of a renewal if it is due, or keeps it alive no longer.
func (k *Keeper) act(c *Kept, s *State, a renewal.Action, next, now clock.Instant) {
	switch a {
	case renewal.Renew:
		if err := k.renew(c, s, now); err != nil {
			k.end(c, err)
			return
		}
		fallthrough
	case renewal.Wait:
		k.schedule.Set((*entry)(c), next)
	case renewal.Stop: // and about to be stopped
		k.end(c, engine.ErrStopped)
	case renewal.Expire:
		k.end(c, c.causeOf(s))
	case renewal.Lose:
		k.end(c, engine.ErrNotHeld)
	}
}

// end keeps a lock alive no longer, and ends its context: that runs no user code. What has ended has no place in the
// schedule, and never has one again. mu is held: Kept.Err relies on it, all ends are seen.
func (k *Keeper) end(c *Kept, cause error) {
	if c.place == 0 {
		return
	}
	k.schedule.Remove((*entry)(c))
	s, _ := c.hold.State()
	if c.hold.lock() {
		c.hold.lease().kept = nil
		c.hold.lease().mu.Unlock()
	}
	c.ended(cause)
	if cause != engine.ErrStopped && cause != engine.ErrClosed {
		k.gone = append(k.gone, s)
		k.lost++
		if f, key := k.cfg.OnLockLost, s.Key; c.hold.ReportLoss() && f != nil {
			k.news = append(k.news, engine.News(func() { f(key, cause) }))
		}
	}
}

// unlock gives mu up, and reports what was found under it. The goroutine of callbacks calls the hooks.
func (k *Keeper) unlock() {
	news, gone := k.news, k.gone
	k.news, k.gone = nil, nil
	k.mu.Unlock()
	for i := range gone {
		k.cfg.Gone(&gone[i])
	}
	for _, event := range news {
		k.cfg.Home.Inform(event)
	}
}

// renew begins a renewal; an error means a wrong TTL, as of an attached lock, above MaxTTL. The nodes have half of the
// remaining validity at most, so there is time for another try.
func (k *Keeper) renew(c *Kept, s *State, now clock.Instant) (err error) {
	if c.calls, err = s.Calls(k.cfg.Home, engine.Extend, s.TTL, s.Tail(k.cfg.Tail)); err != nil {
		return err
	}
	c.began = now
	c.hold.Bind(c.calls, s.Until)
	c.calls.Each(func(call *engine.Call) {
		call.Done, call.Ends, call.Token = (*entry)(c), engine.Prompt, s.Token
		call.Timeout = min(call.Timeout, max(s.Until.Sub(now)/2, leastTimeout))
		c.left.Add(1)
		if !slices.Contains(k.driven, call.On) {
			k.driven = append(k.driven, call.On)
		}
	})
	_ = c.calls.Enqueue() // ErrClosed: Close has ended, or will end, all contexts
	return nil
}

// result notes the result of the renewal of a lock, perhaps kept alive no longer. mu is held.
func (k *Keeper) result(c *Kept, now clock.Instant) {
	by, err := c.calls.Result()
	c.calls.Note(err)
	result := ResultOf(err)
	k.NoteExtend(c.hold, c.calls, result)
	err = by.Explain(err)
	if f := k.cfg.OnAttempt; f != nil {
		k.news = append(k.news, engine.Attempts.For(f, engine.Attempt{
			Kind: engine.Extend, Key: string(c.calls.Key), Took: by.Took(k.cfg.Clock.Now()), Ended: time.Now(), Votes: by.Tally, Err: err,
		}))
	}
	if c.place != 0 {
		c.failed = err
		s, _ := c.hold.State()
		action, next := c.lock.Result(result, s.Held, c.began, now, rand.Float64())
		if action == renewal.Wait && err == engine.ErrClosed {
			k.end(c, err)
		} else {
			k.act(c, &s, action, next, now)
		}
	}
	c.calls.Free()
	c.calls = nil
}

// ResultOf is the result of an extension that ended with err.
func ResultOf(err error) renewal.Result {
	switch err {
	case nil:
		return renewal.Won
	case engine.ErrNotHeld:
		return renewal.Lost
	}
	return renewal.Unknown
}
