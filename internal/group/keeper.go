package group

import (
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/engine"
	"github.com/redlock-go/redlock/internal/renewal"
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
	gone     []state          // locks that were lost, to be reported to their lines without mu
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
