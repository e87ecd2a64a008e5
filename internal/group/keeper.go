package group

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/clock"
	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/renewal"
	"github.com/redlock-go/redlock/quorum"
)

// keeper keeps locks alive, all of a client in one goroutine: it renews them, and tells
// when one has ended. The goroutine begins with the first lock and ends with the client.
//
// No lock is renewed after it was stopped: an entry is taken out of the schedule, and
// renewals are put into the engine's queue, with mu held. Results come from the driver,
// which appends them to the inbox and does nothing else.
//
// Lock order: mu, then a lease's or the engine's queue's. The inbox's lock is taken alone,
// or under the driver lock or mu.
type keeper struct {
	group *Group

	mu       sync.Mutex
	schedule renewal.Schedule[*entry]
	failing  map[*entry]error // why the last renewal has failed
	endings  []ending         // to be told without mu
	reports  []func()         // to be announced without mu
	lost     uint64
	started  bool
	closed   bool

	inbox  inbox
	wake   chan struct{}
	done   chan struct{}
	ended  sync.WaitGroup
	unused sync.Pool // of *entry, those with user code
	spare  sync.Pool // of *renewing
}

// entry is a lock that is kept alive. There may be a million, so it is small: 48 bytes,
// for which the allocator has a size.
type entry struct {
	renewal.Lock
	lease *lease
	life  uint64
	end   func(error) // is told why it has ended; may be nil
	place int32       // in the schedule
	user  bool        // end is user code, and the entry is used again
}

// SetPlace implements renewal.Entry.
func (e *entry) SetPlace(place int) { e.place = int32(place) }

// Place implements renewal.Entry.
func (e *entry) Place() int { return int(e.place) }

// ending is the end of an entry, to be told.
type ending struct {
	end   func(error)
	user  bool
	cause error
	lost  string // the key, where the loss is to be reported
}

const (
	never = time.Duration(1<<63 - 1)
	// maxRenewals is how many renewals begin in a turn: one batch.
	maxRenewals = 1024
	// syncEvery is how often it is looked whether the machine was suspended, at least.
	syncEvery = 100 * time.Millisecond
)

func (k *keeper) init(g *Group) {
	k.group = g
	k.failing = make(map[*entry]error)
	k.wake, k.done = make(chan struct{}, 1), make(chan struct{})
	k.inbox.wake = k.ring
}

// ring has the keeper take its next turn now.
func (k *keeper) ring() {
	select {
	case k.wake <- struct{}{}:
	default: // it will
	}
}

// addFunc is add for user code, which is not told of a stop.
func (k *keeper) addFunc(h Handle, limit time.Duration, end func(error)) error {
	e, _ := k.unused.Get().(*entry)
	if e == nil {
		e = &entry{place: renewal.Nowhere}
	}
	e.user = true
	err := k.add(h, e, limit, end)
	if err != nil {
		k.unused.Put(e)
	}
	return err
}

// add begins to keep the lock of h alive by an entry that is not in use, until an instant
// at most. end is told why that has ended.
func (k *keeper) add(h Handle, e *entry, limit time.Duration, end func(error)) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return engine.ErrClosed
	}
	s, err := h.keep(e)
	if err != nil {
		return err
	}
	e.lease, e.life, e.end = h.lease, h.life, end
	k.schedule.Set(e, e.Start(held(s, true), began(s), limit))
	k.ringFor(e)
	if !k.started {
		k.started = true
		k.ended.Add(1)
		go k.run()
	}
	return nil
}

// ringFor has the keeper take its next turn earlier, if that is to be about an entry.
func (k *keeper) ringFor(e *entry) {
	if first, _ := k.schedule.First(); first == e {
		k.ring()
	}
}

// review gives the entry of a lock, if there is one, its next event anew: its holder
// extends it, or has done so, and its validity may be shorter now.
func (k *keeper) review(h Handle, extended bool) {
	e := h.lease.keptBy(h.life)
	if e == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s, ok := h.state()
	if !ok || s.released || !e.is(h.lease, h.life) {
		return
	}
	if extended {
		delete(k.failing, e)
	}
	k.schedule.Set(e, e.Review(held(s, true), k.schedule.At(e), k.group.clock.Now(), extended))
	k.ringFor(e)
}

// is says whether e still is the entry of that lock.
func (e *entry) is(l *lease, life uint64) bool {
	return e.lease == l && e.life == life && e.place != renewal.Nowhere
}

// stop ends an entry that was made for h.
func (k *keeper) stop(e *entry, h Handle, cause error) {
	k.mu.Lock()
	if e.is(h.lease, h.life) {
		k.endEntry(e, cause)
	}
	k.unlockAndTell()
}

// expire ends an entry whose validity is over.
func (k *keeper) expire(e *entry, h Handle) {
	now := k.group.clock.Now()
	k.mu.Lock()
	if s, ok := h.state(); e.is(h.lease, h.life) && ok && now >= s.until {
		k.endEntry(e, k.causeOf(e, &s))
	}
	k.unlockAndTell()
}

// close ends all entries.
func (k *keeper) close() {
	k.mu.Lock()
	k.closed = true
	for k.schedule.Len() > 0 {
		e, _ := k.schedule.First()
		k.endEntry(e, engine.ErrClosed)
	}
	k.unlockAndTell()
	close(k.done)
	k.ended.Wait()
}

// Kept is how many locks are kept alive, and how many were lost while they were.
func (g *Group) Kept() (kept int, lost uint64) {
	g.keeper.mu.Lock()
	defer g.keeper.mu.Unlock()
	return g.keeper.schedule.Len(), g.keeper.lost
}

// run is the keeper's goroutine.
func (k *keeper) run() {
	defer k.ended.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		timer.Reset(k.turn())
		select {
		case <-timer.C:
		case <-k.wake:
		case <-k.done:
			return
		}
	}
}

// turn does what is due and returns how long it is to the next turn.
func (k *keeper) turn() (pause time.Duration) {
	clock.Sync()
	now := k.group.clock.Now()
	k.mu.Lock()
	for r := k.inbox.take(); r != nil; {
		next := r.next
		k.result(r, now)
		r = next
	}
	var ops engine.Ops
	for n := 0; n < maxRenewals && k.schedule.Len() > 0; n++ {
		e, at := k.schedule.First()
		if at > now {
			break
		}
		k.event(e, now, &ops)
	}
	_ = k.group.engine.Enqueue(ops) // ErrClosed: close has ended, or will end, all entries
	pause = time.Hour
	if k.schedule.Len() > 0 {
		_, at := k.schedule.First()
		pause = max(0, min(at-now, syncEvery))
	}
	k.unlockAndTell()
	k.group.engine.Drive()
	return pause
}

// event does what is due for an entry, and gives it its next event.
func (k *keeper) event(e *entry, now time.Duration, ops *engine.Ops) {
	s, ok := e.lease.get(e.life)
	if action, next := e.Event(held(s, ok), now); action == renewal.Renew {
		k.renew(e, &s, now, ops)
	} else {
		k.do(e, &s, action, next)
	}
}

// do waits for the next event of an entry, or ends it.
func (k *keeper) do(e *entry, s *state, a renewal.Action, next time.Duration) {
	switch a {
	case renewal.Wait:
		k.schedule.Set(e, next)
	case renewal.Stop: // and about to be stopped
		k.endEntry(e, engine.ErrStopped)
	case renewal.Limit:
		k.endEntry(e, engine.ErrMaxHold)
	case renewal.Expire:
		k.endEntry(e, k.causeOf(e, s))
	case renewal.Lose:
		k.endEntry(e, engine.ErrNotHeld)
	}
}

// causeOf is why validity has come to its end. It may be 0 because a release was asked
// for, whose caller is about to stop the entry; or because the lock was found to be lost,
// by an extension of its holder.
func (k *keeper) causeOf(e *entry, s *state) error {
	switch err := k.failing[e]; {
	case s.released:
		return engine.ErrStopped
	case s.until == 0:
		return engine.ErrNotHeld
	case err != nil:
		return err
	}
	return engine.ErrExpired
}

// endEntry ends an entry. mu is held.
func (k *keeper) endEntry(e *entry, cause error) {
	k.schedule.Remove(e)
	delete(k.failing, e)
	s, _ := e.lease.get(e.life)
	e.lease.unkeep(e.life)
	end := ending{e.end, e.user, cause, ""}
	if e.user && cause == engine.ErrStopped {
		end.end = nil
	}
	if cause != engine.ErrStopped && cause != engine.ErrMaxHold && cause != engine.ErrClosed {
		if k.lost++; e.lease.reportLoss(e.life) {
			end.lost = s.key
		}
	}
	if end.end != nil || end.lost != "" {
		k.endings = append(k.endings, end)
	}
	e.End()
	e.lease, e.end = nil, nil
	if e.user {
		k.unused.Put(e)
	}
}

// unlockAndTell gives mu up and tells what has ended. To end a context runs no user code;
// the rest is called by the goroutine of callbacks.
func (k *keeper) unlockAndTell() {
	endings, news := k.endings, k.reports
	k.endings, k.reports = nil, nil
	k.mu.Unlock()
	for _, e := range endings {
		if e.end != nil && !e.user {
			e.end(e.cause)
		}
	}
	for _, e := range endings {
		if e.end != nil && e.user {
			news = append(news, func() { e.end(e.cause) })
		}
		if f := k.group.cfg.OnLockLost; f != nil && e.lost != "" {
			news = append(news, func() { f(e.lost, e.cause) })
		}
	}
	if len(news) > 0 {
		k.group.engine.Announce(news)
	}
}

// renew begins a renewal.
func (k *keeper) renew(e *entry, s *state, now time.Duration, ops *engine.Ops) {
	r, _ := k.spare.Get().(*renewing)
	if r == nil {
		r = &renewing{inbox: &k.inbox}
	}
	if err := r.prepare(k.group, s, now); err != nil { // a TTL that MaxTTL forbids, of an attached lock
		k.endEntry(e, err)
		return
	}
	r.extension = e.lease.extending(e.life, r.ttl(), quorum.Until(now, r.ttl()))
	if r.extension == nil {
		k.endEntry(e, engine.ErrStopped)
		return
	}
	seq, next := e.Begin(held(*s, true))
	r.entry, r.seq, r.lease, r.life, r.began = e, seq, e.lease, e.life, now
	r.add(ops)
	k.schedule.Set(e, next)
}

// result takes in what became of a renewal. mu is held.
func (k *keeper) result(r *renewing, now time.Duration) {
	err := r.result()
	r.lease.extended(r.life, r.extension, resultOf(false, err))
	e := r.entry
	if e.is(r.lease, r.life) && e.Awaits(r.seq) {
		k.renewed(e, r, err, now)
	}
	k.report(r, err)
	r.clear()
	k.spare.Put(r)
}

// renewed gives an entry its next event behind a renewal.
func (k *keeper) renewed(e *entry, r *renewing, err error, now time.Duration) {
	s, ok := e.lease.get(e.life)
	action, next := e.Result(resultOf(false, err), held(s, ok), r.began, now, rand.Float64())
	if action == renewal.Wait && err == engine.ErrClosed {
		k.endEntry(e, err)
		return
	}
	if delete(k.failing, e); err != nil {
		k.failing[e] = err
	}
	k.do(e, &s, action, next)
}

// report has a renewal reported as an attempt.
func (k *keeper) report(r *renewing, err error) {
	if k.group.cfg.OnAttempt == nil {
		return
	}
	for i := range r.parts {
		op := &r.parts[i].Op
		key, took, tally := string(op.Key), op.Took(k.group.clock.Now()), op.Tally
		k.reports = append(k.reports, func() { k.group.cfg.OnAttempt(ofOp, engine.Extend, key, took, tally, err) })
	}
}
