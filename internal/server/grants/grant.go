package grants

import (
	"context"
	"time"

	"github.com/redlock-go/redlock"
)

// state is the phase of a grant. Grant.begin, finish and conclude change it, and nothing else does:
//
//	      begin              finish
//	held ───────► changing ───────────► held       extended, or left as it was
//	 │               │             ├──► ended      its release was answered
//	 │               │             ├──► lost       the nodes had lost it before, perhaps to another front end
//	 │               │             └──► doubtful   its release was not answered: the nodes decide
//	 │ conclude      │ conclude                        │ conclude
//	 └───────────────┴─────────────────────────────────┴──► ended
//
// A release under way is no end. The changes of one grant follow one another, so a change beside a release waits for
// its answer. It then finds no lock, and goes on to no other. A change beside one that finds the grant lost asks the
// nodes for their lock, like that one.
//
// conclude is the end by time, noted when a client learns of it, or by a release without a waiting caller. An extension
// answered after that has come too late, and is undone.
type state uint8

const (
	held     state = iota // by its client
	changing              // an extension or a release is under way
	doubtful              // nodes may have released it, or do so yet
	ended                 // no lock for any client; nodes may keep it for the rest of its padding
	lost                  // likewise, and the nodes may have another
)

// Grant is a lock granted, extended or being released by this process.
type Grant struct {
	Lock         redlock.Lock
	store        *Store
	value, token string          // of its client; of the lock, value included
	holder       string          // shown to operators; "" if another front end has granted it
	alive        context.Context // ends when it is no longer kept alive; nil: it never was
	stop         func()          // ends keeping it alive

	isKeptElsewhere bool // the granting front end keeps it alive

	// Guarded by store.mu.
	state     state
	isAdopted bool          // from the nodes, and not changed yet: they know its end
	settled   chan struct{} // closed at the end of the change under way; nil: no change waits for it
	ends      time.Time     // for its client, unless kept alive
	stored    time.Duration // the TTL at the nodes
	stays     time.Time     // at the nodes until then, unless extended by another front end
	end       *time.Timer   // releases a lock kept much longer by the nodes; or nil
}

// isKept reports whether the lock is kept alive.
func (g *Grant) isKept() bool { return g.alive != nil && g.alive.Err() == nil }

// begin begins a change, after the one under way. If the returned state is not changing, the grant is no longer held.
func (g *Grant) begin(ctx context.Context) (state, error) {
	mu := &g.store.mu
	mu.Lock()
	defer mu.Unlock()
	for g.state == changing {
		if g.settled == nil {
			g.settled = make(chan struct{})
		}
		settled := g.settled
		mu.Unlock()
		select {
		case <-settled:
		case <-ctx.Done():
		}
		mu.Lock()
		if err := ctx.Err(); err != nil {
			return doubtful, err
		}
	}
	switch {
	case g.state != held:
		return g.state, nil
	case g.isOver():
		return ended, nil
	}
	g.state = changing
	return changing, nil
}

// finish ends the change under way, and reports false if the grant has ended meanwhile.
func (g *Grant) finish(to state) bool {
	s := g.store
	s.mu.Lock()
	defer s.mu.Unlock()
	hasEnded := g.state >= ended
	if !hasEnded {
		g.state = to
	}
	if g.settled != nil {
		close(g.settled)
		g.settled = nil
	}
	if g.state != held {
		g.stopTimer()
	}
	if to >= ended || g.isAdopted {
		s.forget(g)
	}
	return !hasEnded
}

// conclude ends a grant in any state. store.mu is held.
func (g *Grant) conclude() {
	g.state = ended
	g.stopTimer()
}

// left is the rest of a grant for its client. A change under way may have ended its validity in the client of the
// nodes. store.mu is held.
func (g *Grant) left() time.Duration {
	left := time.Until(g.ends)
	if g.state == held {
		left = min(left, g.Lock.Remaining())
	}
	return max(0, left)
}

// isOver reports whether the time of a grant is over. store.mu is held.
func (g *Grant) isOver() bool {
	switch {
	case g.state >= ended:
		return true
	case g.isKept():
		return false
	case g.isAdopted:
		return time.Now().After(g.stays)
	}
	return g.left() == 0
}

// isPast reports whether the grant is over for both its client and the nodes. store.mu is held.
func (g *Grant) isPast() bool {
	return g.state != changing && !g.isKept() && time.Now().After(g.stays)
}

// isExtendedElsewhere reports whether nodes keep a grant for longer than this process has asked for. store.mu is held.
func (g *Grant) isExtendedElsewhere(seen time.Time) bool {
	const rounding = 2 * time.Millisecond // of the nodes
	return !g.isKept() && seen.After(g.stays.Add(rounding))
}

// keeps notes that nodes keep the lock for at most a TTL from now on. store.mu is held.
func (g *Grant) keeps(stored time.Duration) {
	longest := stored
	if g.isKept() {
		longest = max(stored, g.stored) // by a renewal just now
	}
	g.stored = stored
	if stays := time.Now().Add(longest); stays.After(g.stays) {
		g.stays = stays
	}
}

// Renew makes ttl the time left of a grant for its client.
func (g *Grant) Renew(ctx context.Context, ttl time.Duration) error {
	if g.isKept() {
		return nil
	}
	return g.last(ctx, ttl, Stored(ttl), time.Now())
}

// Drop releases a grant that its client does not need or has not received.
func (g *Grant) Drop() {
	s := g.store
	s.mu.Lock()
	if same := s.table[g.Lock.Key()]; same != nil && same.token == g.token {
		same.conclude()
	}
	g.conclude()
	s.mu.Unlock()
	g.Lock.ReleaseAsync()
}

// last makes ttl the time of a grant's client from now on.
func (g *Grant) last(ctx context.Context, ttl, stored time.Duration, began time.Time) error {
	longer, err := g.store.lengthen(ctx, g.Lock, ttl, began)
	if err == nil {
		g.set(time.Now().Add(ttl), max(stored, longer))
	}
	return err
}

// lengthen extends a lock once if it has less than ttl left, because the nodes were slower than the padding. It extends
// by the time taken since began, to longer at the nodes. A lock still short after that is the client's for as long as
// it lasts.
func (s *Store) lengthen(ctx context.Context, lock redlock.Lock, ttl time.Duration, began time.Time) (longer time.Duration, err error) {
	if lock.Remaining() >= ttl {
		return 0, nil
	}
	longer = min(Stored(ttl)+2*time.Since(began), s.maxTTL())
	if err = lock.Extend(ctx, longer); isGone(err) || err != nil && lock.Remaining() == 0 {
		return 0, err
	}
	return longer, nil
}

// set notes the end of the client's time. No extension shortens a key at the nodes: if they keep the lock for much
// longer, it is released at that end.
func (g *Grant) set(ends time.Time, stored time.Duration) {
	s := g.store
	s.mu.Lock()
	defer s.mu.Unlock()
	g.keeps(stored)
	g.ends, g.isAdopted = ends, false
	g.stopTimer()
	if left := time.Until(ends); g.Lock.Remaining() > left+minPadding+left/shortPart {
		g.end = time.AfterFunc(left, g.expire)
	}
}

// clearPause is the pause between two questions about a grant due for release at its end.
const clearPause = time.Second

// expire releases a grant at the end of its time. Nodes without an answer are asked again while they may have it.
func (g *Grant) expire() {
	s, key := g.store, g.Lock.Key()
	woken := s.woken(key)
	switch isFree, err := s.clear(s.kept, key); {
	case isFree:
		s.freed(key, woken)
	case err != nil && s.kept.Err() == nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.table[key] == g && !g.isPast() {
			g.end = time.AfterFunc(clearPause, g.expire)
		}
	}
}

// stopTimer stops the release at the end of the client's time: it would wake a waiter for the next
// holder's lock. store.mu is held.
func (g *Grant) stopTimer() {
	if g.end != nil {
		g.end.Stop()
		g.end = nil
	}
}
