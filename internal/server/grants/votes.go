package grants

import (
	"time"

	"github.com/redlock-go/redlock"
)

// A node that restarts has forgotten its locks, and has no vote for a while. Its lack of a key is no fact, like the
// lack of an answer of a silent node: with the key of another node it may be a lock of a quorum. A single Redis never
// says both "taken" and "not there" of one key at one time.

// votesFor is the time for which the nodes' states are believed.
const votesFor = 100 * time.Millisecond

// votes holds the nodes that have no vote now, as of the last look. Store.mu guards it.
type votes struct {
	lacking map[int]error // by their Node.Index
	until   time.Time
}

// lacking returns the nodes without a vote, and why.
func (s *Store) lacking() map[int]error {
	s.mu.Lock()
	seen := s.votes
	s.mu.Unlock()
	if time.Now().Before(seen.until) {
		return seen.lacking
	}
	lacking := map[int]error{}
	for _, n := range s.cfg.Client.Stats().Nodes {
		switch {
		case !n.Up:
			lacking[n.Index] = n.Err
		case n.NoVote != nil:
			lacking[n.Index] = n.NoVote
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.votes = votes{lacking, time.Now().Add(votesFor)}
	return lacking
}

// mayBeHeld reports whether a value shown by too few nodes would have a quorum together with nodes that have not
// answered, or may have forgotten it.
func (s *Store) mayBeHeld(seen redlock.KeyState) bool {
	most, silent := 0, 0
	same := map[string]int{}
	for _, n := range seen.Nodes {
		if n.Digest != "" {
			same[n.Digest]++
			most = max(most, same[n.Digest])
		}
	}
	if most == 0 {
		return false
	}
	lacking := s.lacking()
	for _, n := range seen.Nodes {
		if _, is := lacking[n.Node]; n.Err != nil || is && n.Digest == "" {
			silent++
		}
	}
	return most+silent > len(seen.Nodes)/2
}
