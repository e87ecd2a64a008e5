package fleet

import "sync"

// Servers is the servers of connected nodes, by run_id: no server may be two nodes. Fleets that must not share a
// server share one of these. Its lock is taken under the locks of fleets, and nothing is taken under it.
type Servers struct {
	mu sync.Mutex
	of map[string]string // the node of each
}

// claim notes that a node is connected to a server. If another node is so already, it returns the name of the other,
// and not ok.
func (s *Servers) claim(runID, node string) (other string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other, taken := s.of[runID]; taken {
		return other, false
	}
	if s.of == nil {
		s.of = make(map[string]string)
	}
	s.of[runID] = node
	return "", true
}

// leave notes the end of a node's connection to a server.
func (s *Servers) leave(runID, node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[runID] == node {
		delete(s.of, runID)
	}
}
