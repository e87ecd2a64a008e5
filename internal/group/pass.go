package group

import (
	"math/rand/v2"
	"time"

	"github.com/redlock-go/redlock/internal/fencing"
	"github.com/redlock-go/redlock/internal/token"
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
	line := s.table.Find(key)
	if line == nil || line.First() == nil || line.Passes <= 0 {
		s.mu.Unlock()
		return false
	}
	w := line.First().Owner
	life, until, ok := h.lease.pass(h.life, l.group.clock.Now(), w.ttl)
	if !ok {
		s.mu.Unlock()
		return false
	}
	next := s.table.Leave(&w.Waiter)
	line.Until = until
	line.Passes--
	l.waiting.Add(-1)
	l.passed.Add(1)
	w.handed = Handle{h.group, h.lease, life, h.nextFence()}
	w.ring()
	var left departure
	switch {
	case next == nil:
		left = l.settle(s, line)
	case next.Owner.look > until+maxJitter:
		next.Owner.ring()
	}
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

// beginTurn notes that the nodes have granted a waiter of the line the lock. Before others
// have their turn the lock may pass on to those that wait now, or further if none
// is known.
func beginTurn(line *line, until time.Duration) {
	line.Contender.Won()
	line.Until, line.Passes = until, maxPasses-1
	if line.Contender.Others() > 0 {
		line.Passes = min(line.Passes, line.Len()-1)
	}
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
	s := l.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.table.Find(key)
	if line == nil || line.First() == nil || line.Busy {
		return nil
	}
	w, usable := line.First().Owner, l.pushes.usable.Load()
	if !w.parked || usable == 0 || !line.Contender.MayAttempt() {
		return nil
	}
	w.call.Token, w.call.Block = f.token, f.block
	line.Until = 0
	line.Contender.Freed()
	line.Busy, w.acts, w.asks = true, line, true
	w.ring()
	return w
}

// freed wakes the first that waits for the key of h, because its holder in this process has
// given it back. Where processes do not queue up, and the lock had been passed on, the
// first leaves others their turn: it waits as they do between two attempts. It does
// so as often as costs the line a ninth of its time.
func (l *lines) freed(h Handle, held *state) {
	if l.known.Load() == 0 {
		return
	}
	s := l.shard(held.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.table.Find(held.key)
	if line == nil {
		return
	}
	line.Until = 0
	line.Contender.Freed()
	if first := line.First(); first != nil {
		if l.pushes.usable.Load() == 0 {
			line.Until = l.turnOfOthers(h, held)
		}
		first.Owner.ring()
	}
}

// turnOfOthers is until when the line for a lock that was given back leaves it alone.
func (l *lines) turnOfOthers(h Handle, held *state) (until time.Duration) {
	if h.life%maxPasses == 0 {
		return 0
	}
	now, pause := l.group.clock.Now(), l.group.pause(lastAttempt)
	if long := now - began(*held); long/8 < rand.N(pause+1) {
		return 0
	}
	return now + pause
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
	line := s.table.Find(key)
	if line == nil || line.First() == nil {
		return
	}
	if held, ok := h.state(); ok && held.until < line.Until {
		line.Until = held.until
		line.First().Owner.ring()
	}
}
