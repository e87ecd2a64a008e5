package group

import (
	"slices"
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/token"
)

// lease is the state of one lock that is held, or a used one that waits for the
// next. It is safe for concurrent use.
//
// A lease is used again once its lock is gone, so that acquiring allocates
// nothing. Handles outlive their lock, so each remembers the life of the lease that
// it was given. A handle that is used after its lock was released finds another
// life and holds nothing. That is why a Handle may be copied, kept and used twice
// without harm.
type lease struct {
	mu    sync.Mutex
	life  uint64
	key   string
	token token.Token

	confirmed time.Duration // end of validity by what the nodes have confirmed
	until     time.Duration // the same, with what they may have been asked since
	extends   []extension   // under way, by slot

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

// state is what a handle holds.
type state struct {
	key      string
	token    token.Token
	until    time.Duration // when validity ends
	released bool          // a release was asked for: no validity, but perhaps a key
}

// begin starts a life and returns its number, never 0. The lease must not be in
// use.
func (l *lease) begin(key string, t token.Token, until time.Duration, absent uint64) (life uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.life++
	l.key, l.token, l.absent = key, t, absent
	l.confirmed, l.until = until, until
	l.extends = l.extends[:0]
	l.releases, l.contended, l.reported = 0, false, false
	return l.life
}

// is says whether a life has not ended. l.mu is held.
func (l *lease) is(life uint64) bool { return l.life == life && l.key != "" }

// get returns what is held, and false if that life is over.
func (l *lease) get(life uint64) (s state, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) {
		return
	}
	s = state{l.key, l.token, l.until, l.releases > 0}
	if s.released {
		s.until = 0
	}
	return s, true
}

// extending notes that an extension is about to be sent which would end validity
// at until. An earlier end counts from now on: the nodes may apply it at any time.
// The slot is for extended; -1 says that the lock was released, or is about to be.
func (l *lease) extending(life uint64, until time.Duration) (slot int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) || l.releases > 0 {
		return -1
	}
	e := extension{true, until, until}
	for i := range l.extends {
		if other := &l.extends[i]; other.busy {
			e.least = min(e.least, other.until)
			other.least = min(other.least, until)
		}
	}
	slot = slices.IndexFunc(l.extends, func(e extension) bool { return !e.busy })
	if slot < 0 {
		slot = len(l.extends)
		l.extends = append(l.extends, e)
	} else {
		l.extends[slot] = e
	}
	l.until = min(l.until, until)
	return slot
}

// extendResult is what became of an extension.
type extendResult uint8

const (
	extendUnsent  extendResult = iota // no node has heard of it
	extendUnknown                     // nodes may apply it, or may not
	extendWon                         // a quorum has applied it
	extendLost                        // too few nodes have the key
)

// extended notes what became of an extension. Where extensions overlap, it is not
// known which of them the nodes applied last, so one that has won ends validity
// with the least of those that overlapped it.
func (l *lease) extended(life uint64, slot int, result extendResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) || slot < 0 {
		return
	}
	e := &l.extends[slot]
	e.busy = false
	switch {
	case result == extendLost || l.confirmed == 0: // once lost, for ever
		l.confirmed = 0
	case result == extendWon:
		l.confirmed = e.least
	case result == extendUnknown:
		l.confirmed = min(l.confirmed, e.until)
	}
	l.until = l.confirmed
	for i := range l.extends {
		if other := &l.extends[i]; other.busy {
			l.until = min(l.until, other.until)
		}
	}
}

// releasing notes that a release is about to be sent, which ends validity: the
// nodes may apply it at any time, and another holder may follow. It returns the
// nodes that do not have the key, a bit each.
func (l *lease) releasing(life uint64) (absent uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) {
		return 0
	}
	l.contended = l.contended || l.releases > 0
	l.releases++
	return l.absent
}

// unreleased takes a release back that was never sent.
func (l *lease) unreleased(life uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.is(life) {
		l.releases--
	}
}

// reportLoss notes that the loss of the lock is known, and returns whether it is to
// be reported: once, and not of a lock that another release may have deleted.
func (l *lease) reportLoss(life uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) || l.reported {
		return false
	}
	l.reported = true
	return !l.contended
}

// end ends a life. Of several calls one returns true, so that one caller alone puts
// the lease up for the next lock.
func (l *lease) end(life uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) {
		return false
	}
	l.key = ""
	return true
}
