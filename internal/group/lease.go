package group

import (
	"sync"
	"time"

	"github.com/redlock-go/redlock/internal/renewal"
	"github.com/redlock-go/redlock/internal/token"
	"github.com/redlock-go/redlock/internal/waiters"
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

	validity renewal.Validity

	absent uint64 // nodes without the key, a bit each
	kept   *entry // of the keeper, if it keeps the lock alive
	more   *more  // what only some locks have
}

const (
	contended = 1 << iota // there were several releases at once, or one after the other
	reported              // that the lock is lost, or there will be nothing to report
	tokenTold             // its user has asked for the token
)

// maxPasses: a lease's life is a multiple of it when the nodes have granted the lock.
const maxPasses = waiters.MaxPasses

// manyReleases is where releases stops counting: the lock has no validity any more,
// although none of them may have been sent.
const manyReleases = 255

// more is what only some locks have: several keys, or a value that is more than a token.
type more struct {
	keys     []string // all, if there are several
	attached bool     // it was acquired elsewhere, and tail follows the token in its value
	tail     string
}

// state is a copy of a lease's state, for its handle.
type state struct {
	key      string
	token    token.Token
	until    time.Duration // when validity ends
	ttl      time.Duration
	released bool // a release was asked for: no validity, but perhaps a key
	more     *more
	kept     *entry
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
	l.life = (l.life | (maxPasses - 1)) + 1
	l.key, l.token, l.more, l.absent = s.key, veil(s.token), s.more, absent
	l.validity, l.kept = renewal.Begin(s.ttl, s.until), nil
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
	s = state{l.key, l.token.unveil(), l.validity.Until(), l.validity.TTL(), l.releases > 0, l.more, l.kept}
	if s.released {
		s.until = 0
	}
	return s, true
}

// extending notes that an extension is about to be sent which would end validity
// at until: see renewal.Validity. Its result is for extended; nil says that the lock was released, or is about to be.
func (l *lease) extending(life uint64, ttl, until time.Duration) *renewal.Extension {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) || l.releases > 0 {
		return nil
	}
	return l.validity.Extending(ttl, until)
}

// extended notes the result of an extension. x must not be used after this.
func (l *lease) extended(life uint64, x *renewal.Extension, result renewal.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x == nil {
		return
	}
	if l.is(life) { // its list goes with its life
		l.validity.Extended(x, result)
	}
	renewal.Drop(x)
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
	return state{l.key, l.token.unveil(), l.validity.Until(), l.validity.TTL(), false, l.more, nil}, true
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
// must be stopped. Not ok, it must not be sent: the life is over, and another handle may
// hold the lock by the same token since.
func (l *lease) releasing(life uint64) (absent uint64, kept *entry, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) {
		return 0, nil, false
	}
	if l.releases > 0 {
		l.told |= contended
	}
	if l.releases < manyReleases {
		l.releases++
	}
	return l.absent, l.kept, true
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

// Repair implements engine.Repairer. Once a release was asked for, it might reach the node
// before the key does. The node does not count as one without the key any more, before
// it is sent anything: the repair may have set it whatever becomes of its answer.
func (l *lease) Repair(life uint64, node int, now time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) || l.releases > 0 {
		return 0
	}
	left := l.validity.Repair(now)
	if left > 0 {
		l.absent &^= bit(node)
	}
	return left
}

// end ends a life. Of several calls one returns true, so that one caller alone puts
// the lease up for the next lock.
func (l *lease) end(life uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.is(life) {
		return false
	}
	l.key, l.more, l.validity, l.kept = "", nil, renewal.Validity{}, nil
	return true
}

// tell notes that the token is known to the lock's user.
func (l *lease) tell(life uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.is(life) {
		l.told |= tokenTold
	}
}

// pass ends a life and begins the next, of the same lock: the nodes see one long hold. It
// returns when validity ends. The next is kept alive by the TTL that its holder has asked
// for, not by that of the last. It does not if the waiter that asks for ttl would have less
// than 7/8 of that, or more than it; if the lock may be in other hands, is being changed
// or is lost; or if it was passed on often enough.
func (l *lease) pass(life uint64, now, ttl time.Duration) (next uint64, until time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.is(life), l.releases > 0, l.kept != nil, l.more != nil, l.told != 0, (life+1)%maxPasses == 0:
		return 0, 0, false
	}
	if until, ok = l.validity.Pass(now, ttl); ok {
		l.life++
		next = l.life
	}
	return next, until, ok
}
