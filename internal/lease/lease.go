// Package lease keeps what is known of a lock that was acquired, behind handles
// that outlive it.
//
// A [Lease] is reused once its lock is gone, so that acquiring allocates
// nothing. A handle therefore remembers which life of the lease it was given:
// one that is used after its lock was released finds another life, and must be
// told that it holds nothing. This is what makes a handle a value that can be
// copied, kept and used twice without harm.
package lease

import (
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/token"
)

// Lease is one lock held, or a used one that waits for the next.
// It is safe for concurrent use.
type Lease struct {
	mu    sync.Mutex
	life  uint64
	key   string
	token token.Token

	confirmed time.Duration // end of validity by what the nodes have confirmed
	until     time.Duration // the same, with what they may have been asked since
	extending []extension   // under way, by slot

	absent    uint64 // nodes without the key, a bit each
	releases  int    // that were asked for, and may have been sent
	contended bool   // there were several at once, or one after the other
	reported  bool   // that the lock is lost, or there will be nothing to report
}

// extension is one that is under way.
type extension struct {
	busy  bool
	until time.Duration // when validity ends if it is the last that the nodes apply
	least time.Duration // of this and those that overlap it
}

// Begin starts a life and returns its number, never 0. The lease must not be in
// use.
func (l *Lease) Begin(key string, t token.Token, until time.Duration, absent uint64) (life uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.life++
	l.key, l.token, l.absent = key, t, absent
	l.confirmed, l.until = until, until
	l.extending = l.extending[:0]
	l.releases, l.contended, l.reported = 0, false, false
	return l.life
}

// is says whether a life has not ended. l.mu is held.
func (l *Lease) is(life uint64) bool { return l.life == life && l.key != "" }

// Get returns what is held, and false if that life is over. released says that a
// release was asked for: there is no validity, but there may be a key.
func (l *Lease) Get(life uint64) (key string, t token.Token, until time.Duration, released, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) {
		return
	}
	if l.releases > 0 {
		return l.key, l.token, 0, true, true
	}
	return l.key, l.token, l.until, false, true
}

// Extending notes that an extension is on its way which would end validity at
// until. An earlier end counts from now on: the nodes may apply it at any time.
// The slot is for Extended.
func (l *Lease) Extending(life uint64, until time.Duration) (slot int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) {
		return -1
	}
	e := extension{true, until, until}
	for i := range l.extending {
		if other := &l.extending[i]; other.busy {
			e.least = min(e.least, other.until)
			other.least = min(other.least, until)
		}
	}
	slot = slices.IndexFunc(l.extending, func(e extension) bool { return !e.busy })
	if slot < 0 {
		slot = len(l.extending)
		l.extending = append(l.extending, e)
	} else {
		l.extending[slot] = e
	}
	l.until = min(l.until, until)
	return slot
}

// Result is what became of an extension.
type Result uint8

const (
	Unsent  Result = iota // no node has heard of it
	Unknown               // nodes may apply it, or may not
	Won                   // a quorum has applied it
	Lost                  // too few nodes have the key
)

// Extended notes what became of an extension. Where extensions overlap, it is not
// known which of them the nodes applied last; one that has won ends validity with
// the least of those that overlapped it.
func (l *Lease) Extended(life uint64, slot int, result Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) || slot < 0 {
		return
	}
	e := &l.extending[slot]
	e.busy = false
	switch {
	case result == Lost || l.confirmed == 0: // once lost, for ever
		l.confirmed = 0
	case result == Won:
		l.confirmed = e.least
	case result == Unknown:
		l.confirmed = min(l.confirmed, e.until)
	}
	l.until = l.confirmed
	for i := range l.extending {
		if other := &l.extending[i]; other.busy {
			l.until = min(l.until, other.until)
		}
	}
}

// Releasing notes that a release is about to be sent, which ends validity: the
// nodes may apply it at any time, and another holder may follow. It returns the
// nodes that do not have the key, a bit each.
func (l *Lease) Releasing(life uint64) (absent uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) {
		return 0
	}
	l.contended = l.contended || l.releases > 0
	l.releases++
	return l.absent
}

// Unreleased takes a release back that was never sent.
func (l *Lease) Unreleased(life uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.is(life) {
		l.releases--
	}
}

// Report notes that the loss of the lock is known, and returns whether it is to be
// reported: once, and not of a lock that another release may have deleted.
func (l *Lease) Report(life uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) || l.reported {
		return false
	}
	l.reported = true
	return !l.contended
}

// End ends a life and reports whether it was this call that did, so that one
// caller alone puts the lease up for the next.
func (l *Lease) End(life uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) {
		return false
	}
	l.key = ""
	return true
}
