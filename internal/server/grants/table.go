package grants

import (
	"slices"
	"strings"
	"time"
)

// minSweep is the least size of the table at which ended grants are dropped, and maxTable its
// bound: grants beyond it are found at the nodes.
const (
	minSweep = 1 << 10
	maxTable = 1 << 20
)

// get returns the grant of a key, or nil.
func (s *Store) get(key string) *Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table[key]
}

// put notes a new grant. A client that has seen the lock at the nodes may have changed it already:
// then the grant of this change stays.
func (s *Store) put(g *Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := g.Lock.Key()
	if old := s.table[key]; old != nil {
		if old.token == g.token && (old.state == changing || old.state == held && !old.isAdopted) {
			return
		}
		old.stopTimer()
	}
	s.sweepEnded()
	if len(s.table) < maxTable || s.table[key] != nil {
		s.table[key] = g
	}
}

// sweepEnded drops the ended grants once the table has doubled. s.mu is held.
func (s *Store) sweepEnded() {
	if len(s.table) < s.sweep {
		return
	}
	for key, g := range s.table {
		if g.isPast() {
			delete(s.table, key)
		}
	}
	s.sweep = max(minSweep, 2*len(s.table))
}

// forget drops a grant from the table. s.mu is held.
func (s *Store) forget(g *Grant) {
	if key := g.Lock.Key(); s.table[key] == g {
		delete(s.table, key)
	}
}

// adopt notes a grant to be changed, and returns the one in the table if it is of the same lock. A grant of another
// lock stays, unless it is past.
func (s *Store) adopt(g *Grant) *Grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := g.Lock.Key()
	switch now := s.table[key]; {
	case now == nil || now.isPast() || now.token == g.token && now.state > changing:
		s.table[key] = g
	case now.token == g.token:
		return now
	}
	return g
}

// HeldLock is a lock as an operator sees it, without its value.
type HeldLock struct {
	Key, Holder string
	Left        time.Duration // of its client's time; of a lock kept alive, of its validity
}

// mostSearched bounds the grants looked at by Held, since the lock of the table is held meanwhile.
const mostSearched = 1 << 12

// Held returns locks held here, in the order of their keys: most of them, or all. In a large table it sees a part.
func (s *Store) Held(most int) (held []HeldLock) {
	s.mu.Lock()
	seen := 0
	for key, g := range s.table {
		seen++
		if len(held) == most || seen > mostSearched {
			break
		}
		if g.state <= changing && !g.isOver() {
			left := g.left()
			if g.isKept() {
				left = g.Lock.Remaining()
			}
			held = append(held, HeldLock{key, g.holder, left})
		}
	}
	for name, x := range s.shares {
		seen++
		if len(held) == most || seen > mostSearched {
			break
		}
		if left := x.left(); left > 0 {
			held = append(held, HeldLock{name.key, x.holder, left})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(held, func(a, b HeldLock) int { return strings.Compare(a.Key, b.Key) })
	return held
}
