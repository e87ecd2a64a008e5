package group

import "sync"

// Servers holds the servers of the nodes of all groups, by run_id: none may be two nodes. A fleet compares its own nodes. It is
// taken under the driver locks, and nothing is taken under it.
type Servers struct {
	mu sync.Mutex
	of map[string]claimant
}

// claimant is the node of a server: its number in the client, and its name.
type claimant struct {
	node int
	name string
}

// claim notes that a node is connected to a server. If another node is so already, it returns the name of that one.
func (s *Servers) claim(runID string, node int, name string) (other string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if by, taken := s.of[runID]; taken && by.node != node {
		return by.name
	}
	for earlier, by := range s.of { // a connection that did not come up has left it claimed
		if by.node == node {
			delete(s.of, earlier)
		}
	}
	if s.of == nil {
		s.of = make(map[string]claimant)
	}
	s.of[runID] = claimant{node, name}
	return ""
}

// leave notes the end of a node's connection to a server.
func (s *Servers) leave(runID string, node int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of[runID].node == node {
		delete(s.of, runID)
	}
}
