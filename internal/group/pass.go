package group

import (
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/holding"
	"github.com/redlock-go/redlock/internal/token"
)

// A lock that is released goes to the first of its line in one of three ways:
//
//	pass    the lease goes on with another handle: no round trip
//	along   the next acquire is sent with the release: one round trip
//	freed   the first is woken, and asks the nodes when it is its turn

// pass passes the lock of h on to the first that waits for it, and reports whether it did.
// The handle is dead then, as one whose lock was released. Once the group is closed it does
// not: the waiters are about to leave, and cannot give it back.
func (l *lines) pass(h Handle, held *holding.State) bool {
	if l.waiting.Load() == 0 || l.group.cfg.NoHandOver || isClosed(l.group.ending) {
		return false
	}
	s := l.shard(held.Key)
	s.mu.Lock()
	now := l.group.clock.Now()
	first := s.table.MayPass(held.Key, now, held.Until)
	if first == nil {
		s.mu.Unlock()
		return false
	}
	w := first.Owner
	next, until, ok := h.hold.Pass(now, w.ttl)
	if !ok {
		s.mu.Unlock()
		return false
	}
	l.waiting.Add(-1)
	l.passed.Add(1)
	w.handed = Handle{h.group, next}
	left := l.change(s.table.Passed(first, now, until))
	w.ring()
	s.mu.Unlock()
	l.depart(held.Key, left)
	return true
}

// fresh is what an attempt needs that no other had.
type fresh struct {
	token token.Token
	block fencing.Block // where acquires are fenced
}

// freshAlong returns what along needs, if some wait for key. Rand and FenceClock are user
// code, which may panic: so this comes before a release is noted.
func (l *lines) freshAlong(key string) (f fresh) {
	var p fencing.Proposal
	if !l.isTaken(key) || l.group.newToken(&f.token) != nil || l.group.fence.propose(&f.block, &p) != nil {
		return fresh{}
	}
	return f
}

// along returns the first that waits for key, if it may ask for the lock in the moment in
// which a holder gives it back: its call, with a new token, is to be given to DoWith. It is
// nil if there is none.
func (l *lines) along(key string, f fresh) *waiter {
	if isClosed(l.group.ending) {
		return nil
	}
	if l.pushes.usable.Load() == 0 {
		return nil
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.table.Along(key)
	if first == nil {
		return nil
	}
	w := first.Owner
	w.call.Token, w.call.Block = f.token, f.block
	w.call.Proposal.Exceed(f.block)
	w.ring()
	return w
}

// freed reports that a lock has no holder in this process any more, which has given it back
// or lost it.
func (l *lines) freed(s *holding.State) {
	if l.known.Load() == 0 {
		return
	}
	l.freedKey(s.Key)
	for i, key := range s.Several() {
		if i > 0 {
			l.freedKey(key)
		}
	}
}

func (l *lines) freedKey(key string) {
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if wake := s.table.Freed(key); wake != nil {
		wake.Owner.ring()
	}
}

// shortened reports that the validity of the lock of h may end earlier now than its lines
// know.
func (l *lines) shortened(h Handle, s *holding.State) {
	if l.waiting.Load() == 0 {
		return
	}
	held, ok := h.hold.State()
	if !ok {
		return
	}
	for _, key := range s.Keys() {
		s := l.shard(key)
		s.mu.Lock()
		if wake := s.table.Shortened(key, held.Until); wake != nil {
			wake.Owner.ring()
		}
		s.mu.Unlock()
	}
}
