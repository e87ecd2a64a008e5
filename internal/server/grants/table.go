package grants

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

// put notes a grant, and drops the ended ones once the table has doubled.
func (s *Store) put(key string, g *Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.table) >= s.sweep {
		for key, g := range s.table {
			if g.Lock.Remaining() == 0 {
				delete(s.table, key)
			}
		}
		s.sweep = max(minSweep, 2*len(s.table))
	}
	if len(s.table) < maxTable || s.table[key] != nil {
		s.table[key] = g
	}
}

func (s *Store) remove(key string, g *Grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.end != nil {
		g.end.Stop() // or it wakes a waiter for the next holder's lock
	}
	if s.table[key] == g {
		delete(s.table, key)
	}
}
