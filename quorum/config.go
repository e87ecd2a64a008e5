package quorum

// Config has the voting nodes and decides which sets of them are a quorum. Other nodes in a set do not count.
//
// A Config never changes, so tallies and goroutines share it. The zero Config has no nodes, and no set is a quorum of
// it.
type Config struct {
	all   Set // nodes, of this configuration and of the next
	own   Set // of this one
	half  int // of own, rounded down: a quorum has more
	next  *Config
	start Verdict // of a round without votes
}

// Majority returns the configuration in which more than half of the nodes are a quorum.
func Majority(nodes Set) *Config {
	c := Config{all: nodes, own: nodes, half: nodes.Len() / 2}
	return c.started()
}

// Joint returns the configuration in which a set is a quorum if it is one of now and one of next. A node of both is
// one node with one vote, counted in both.
func Joint(now, next *Config) *Config {
	if now.next != nil {
		next = Joint(now.next, next)
	}
	c := Config{all: now.all | next.all, own: now.own, half: now.half, next: next}
	return c.started()
}

// started sets the verdict of a round without votes: without nodes it is lost.
func (c Config) started() *Config {
	c.start = Pending
	if c.Blocks(0) {
		c.start = Lost
	}
	return &c
}

// Nodes returns the set of all nodes.
func (c *Config) Nodes() Set { return c.all }

// IsQuorum reports whether nodes are a quorum.
func (c *Config) IsQuorum(nodes Set) bool {
	return (nodes&c.own).Len() > c.half && (c.next == nil || c.next.IsQuorum(nodes))
}

// Blocks reports whether there is no quorum without nodes: if these refuse or fail, the others cannot win.
func (c *Config) Blocks(nodes Set) bool {
	return (c.own&^nodes).Len() <= c.half || c.next != nil && c.next.Blocks(nodes)
}
