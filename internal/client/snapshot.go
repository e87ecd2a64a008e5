package client

// Snapshot is what a client has under way, as its Stats do not show it. It is for tests, which ask whether what is at a
// node has an owner.
type Snapshot struct {
	Several bool     // attempts on several keys, and sets that take them one by one
	Asks    bool     // questions to nodes have no answer yet
	Owed    []string // addresses of nodes still owed releases
	Kept    []Handle // locks kept alive, with those of a set that takes its keys one by one
}

// Snapshot takes the driver lock of each group for a moment.
func (c *Client) Snapshot() (s Snapshot) {
	s.Several = c.underway.Inside() > 0
	for _, g := range c.groups {
		for _, h := range g.keeper.Kept() {
			if state, held := h.State(); held {
				s.Kept = append(s.Kept, handleOf(g, h, state.Key, state.More))
			}
		}
		owed, asks := g.Engine.Owes()
		s.Asks = s.Asks || asks
		for node := range owed.All() {
			s.Owed = append(s.Owed, g.Addr(node))
		}
	}
	return s
}
