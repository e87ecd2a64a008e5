package group

import (
	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/token"
	"github.com/redlock-go/redlock/internal/waiters"
)

// A lock that is released goes to the first of its line in one of three ways:
//
//	pass    the lease goes on with another handle: no round trip
//	along   the next acquire is sent with the release: one round trip
//	freed   the first is woken, and asks the nodes when it is its turn

// pass passes the lock of h on to the first that waits for it, and says whether it did.
// The handle is dead then, as one whose lock was released. Once the group is closed it does
// not: the waiters are about to leave, and cannot give it back.
func (l *lines) pass(h Handle, key string) bool {
	if l.waiting.Load() == 0 || l.group.cfg.NoHandOver || isClosed(l.group.ending) {
		return false
	}
	s := l.shard(key)
	s.mu.Lock()
	first := s.table.MayPass(key)
	if first == nil {
		s.mu.Unlock()
		return false
	}
	w := first.Owner
	life, until, ok := h.lease.pass(h.life, l.group.clock.Now(), w.ttl)
	if !ok {
		s.mu.Unlock()
		return false
	}
	l.waiting.Add(-1)
	l.passed.Add(1)
	w.handed = Handle{h.group, h.lease, life, h.nextFence()}
	left := l.change(s.table.Passed(first, until))
	w.ring()
	s.mu.Unlock()
	l.depart(key, left)
	return true
}

// nextFence is the fencing token of the next holder of the lease: the nodes have recorded one
// for each time that it may pass on.
func (h Handle) nextFence() uint64 {
	if h.fence == 0 {
		return 0
	}
	return h.fence + 1
}

// fresh is what an attempt needs that no other had.
type fresh struct {
	token token.Token
	block fencing.Block // where acquires are fenced
}

// freshAlong returns what along needs, if some wait for key. Rand and FenceClock are user
// code, which may panic: so this comes before a release is noted.
func (l *lines) freshAlong(key string) (f fresh) {
	if !l.someWait(key) || l.group.newToken(&f.token) != nil {
		return fresh{}
	}
	if l.group.fence.on {
		var err error
		if f.block, err = l.group.fence.propose(new(fencing.Proposal)); err != nil {
			return fresh{}
		}
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
	w.ring()
	return w
}

// freed wakes the first that waits for the key of h, because its holder in this process has
// given it back.
func (l *lines) freed(h Handle, held *state) {
	if l.known.Load() == 0 {
		return
	}
	s := l.shard(held.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := l.group.clock.Now()
	if wake := s.table.Freed(held.key, h.life%waiters.MaxPasses != 0, now-began(*held), l.pushes.usable.Load()); wake != nil {
		wake.Owner.ring()
	}
}

// shortened wakes the first that waits for key, if the lock of h ends earlier now than the
// line knows.
func (l *lines) shortened(h Handle, key string) {
	if l.waiting.Load() == 0 {
		return
	}
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if held, ok := h.state(); ok {
		if wake := s.table.Shortened(key, held.until); wake != nil {
			wake.Owner.ring()
		}
	}
}
