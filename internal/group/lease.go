package group

import (
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
//
// A client may hold a million of them, so the fields are few, and in an order that
// leaves no gaps: 112 bytes.
type lease struct {
	mu       sync.Mutex
	life     uint64
	key      string // the first, of several
	token    veiled
	releases uint8 // that were asked for, and may have been sent; at most manyReleases
	told     uint8 // a bit for each of the following

	ttl       time.Duration // that the nodes were asked for last
	confirmed time.Duration // end of validity by what the nodes have confirmed
	until     time.Duration // the same, with what they may have been asked since
	extends   *extension    // under way

	absent uint64 // nodes without the key, a bit each
	kept   *entry // of the keeper, if it keeps the lock alive
	more   *more  // what only some locks have
}

const (
	contended = 1 << iota // there were several releases at once, or one after the other
	reported              // that the lock is lost, or there will be nothing to report
)

// manyReleases is where releases stops counting: the lock has no validity any more,
// although none of them may have been sent.
const manyReleases = 255

// more is what only some locks have: several keys, or a value that is more than a token.
type more struct {
	keys     []string // all, if there are several
	attached bool     // it was acquired elsewhere, and tail follows the token in its value
	tail     string
}

// extension is one that is under way.
type extension struct {
	next  *extension
	ttl   time.Duration
	until time.Duration // when validity ends if it is the last that the nodes apply
	least time.Duration // of this and those that overlap it
}

var extensions = sync.Pool{New: func() any { return new(extension) }}

// state is a copy of a lease's state, for its handle.
type state struct {
	key      string
	token    token.Token
	until    time.Duration // when validity ends
	ttl      time.Duration
	released bool // a release was asked for: no validity, but perhaps a key
	more     *more
}

// keys is all keys, in the order in which they are written.
func (s *state) keys() []string {
	if s.more != nil && s.more.keys != nil {
		return s.more.keys
	}
	return []string{s.key}
}

// begin starts a life with a state and returns its number, never 0. The lease must not
// be in use.
func (l *lease) begin(s state, absent uint64) (life uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.life++
	l.key, l.token, l.more, l.absent = s.key, veil(s.token), s.more, absent
	l.ttl, l.confirmed, l.until = s.ttl, s.until, s.until
	l.extends, l.kept = nil, nil
	l.releases, l.told = 0, 0
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
	s = state{l.key, l.token.unveil(), l.until, l.ttl, l.releases > 0, l.more}
	if s.released {
		s.until = 0
	}
	return s, true
}

// extending notes that an extension is about to be sent which would end validity
// at until. An earlier end counts from now on: the nodes may apply it at any time.
// Its result is for extended; nil says that the lock was released, or is about to be.
func (l *lease) extending(life uint64, ttl, until time.Duration) *extension {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) || l.releases > 0 {
		return nil
	}
	x := extensions.Get().(*extension)
	*x = extension{l.extends, ttl, until, until}
	for other := l.extends; other != nil; other = other.next {
		x.least = min(x.least, other.until)
		other.least = min(other.least, until)
	}
	l.extends = x
	l.until = min(l.until, until)
	return x
}

// extendResult is the result of an extension.
type extendResult uint8

const (
	extendUnsent  extendResult = iota // no node has heard of it
	extendUnknown                     // nodes may apply it, or may not
	extendWon                         // a quorum has applied it
	extendLost                        // too few nodes have the key
)

// extended notes the result of an extension. Where extensions overlap, the order in
// which the nodes applied them is not known. So an extension that has won ends validity
// at the earliest end of those that overlapped it. x must not be used after this.
func (l *lease) extended(life uint64, x *extension, result extendResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x == nil {
		return
	}
	defer extensions.Put(x)
	if !l.is(life) {
		return // its list has gone with its life
	}
	for at := &l.extends; *at != nil; at = &(*at).next {
		if *at == x {
			*at = x.next
			break
		}
	}
	switch {
	case result == extendLost || l.confirmed == 0: // once lost, for ever
		l.confirmed = 0
	case result == extendWon:
		l.confirmed, l.ttl = x.least, x.ttl
	case result == extendUnknown:
		l.confirmed = min(l.confirmed, x.until)
	}
	l.until = l.confirmed
	for other := l.extends; other != nil; other = other.next {
		l.until = min(l.until, other.until)
	}
}

// keep notes that the keeper has taken a lock on, and returns its state. It is false for
// a lock that was released, or is kept alive already.
func (l *lease) keep(life uint64, e *entry) (s state, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) || l.releases > 0 || l.kept != nil {
		return s, false
	}
	l.kept = e
	return state{l.key, l.token.unveil(), l.until, l.ttl, false, l.more}, true
}

// unkeep takes keep back.
func (l *lease) unkeep(life uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.is(life) {
		l.kept = nil
	}
}

// keptBy is the keeper's entry for the lock, or nil.
func (l *lease) keptBy(life uint64) *entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) {
		return nil
	}
	return l.kept
}

// releasing notes that a release is about to be sent, which ends validity: the
// nodes may apply it at any time, and another holder may follow. It returns the
// nodes that do not have the key, a bit each, and the keeper's entry for the lock, which
// must be stopped.
func (l *lease) releasing(life uint64) (absent uint64, kept *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) {
		return 0, nil
	}
	if l.releases > 0 {
		l.told |= contended
	}
	if l.releases < manyReleases {
		l.releases++
	}
	return l.absent, l.kept
}

// unreleased takes a release back that was never sent.
func (l *lease) unreleased(life uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.is(life) && l.releases < manyReleases {
		l.releases--
	}
}

// reportLoss notes that the loss of the lock is known, and returns whether it is to
// be reported: once, and not of a lock that another release may have deleted.
func (l *lease) reportLoss(life uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) || l.told&reported != 0 {
		return false
	}
	l.told |= reported
	return l.told&contended == 0
}

// end ends a life. Of several calls one returns true, so that one caller alone puts
// the lease up for the next lock.
func (l *lease) end(life uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) {
		return false
	}
	l.key, l.more, l.extends, l.kept = "", nil, nil, nil
	return true
}
