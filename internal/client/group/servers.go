package group

import "sync"

// Servers holds the servers of the nodes of all groups: none may be two nodes. A fleet compares its own nodes. It is
// taken under the driver locks, and nothing is taken under it.
type Servers struct {
	mu sync.Mutex
	of map[int]claimant // by the node's number in the client
}

// claimant is the server of a node's connection, and the node's name.
type claimant struct{ runID, name string }

// claim notes that a node is connected to a server. If another node is so already, it returns the name of that one.
func (s *Servers) claim(runID string, node int, name string) (other string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, by := range s.of {
		if by.runID == runID && at != node {
			return by.name
		}
	}
	if s.of == nil {
		s.of = make(map[int]claimant)
	}
	s.of[node] = claimant{runID, name} // in place of what a connection that did not come up had claimed
	return ""
}

// leave notes the end of a node's connection to its server.
func (s *Servers) leave(node int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, node)
}
