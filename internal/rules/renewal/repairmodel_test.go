package renewal_test

// The model of a lock with extensions and repairs, for TestRepair: all orders of all events, in
// ticks of time. Client 1 holds the lock from the beginning, extends and repairs it, and releases
// it. The others acquire the same key and release it (one is enough to break each rule). Each
// message may be late without bound, in its order on its connection. A restarted node loses its key
// and all messages on their way, and has no vote for a TTL: its quarantine. A connection may break
// alone; a release on its way is handed off on the next.
//
// Replies to the others come at once, so each of them holds the lock for as long as it ever could.

const (
	nodes     = 3
	majority  = 2
	ttl       = 3 // ticks, of each command and of the quarantine
	others    = 1
	maxExtend = 2
)

// rules is the rules of client 1. The zero value is our client's.
type rules struct {
	late      bool // an extend is accepted though it has won after the end of validity
	atOnce    bool // a node is repaired before the extend has won, and counts in it
	released  bool // nodes are repaired after the release
	overwrite bool // repair without NX
}

// world is the bounds of a search.
type world struct {
	rules
	extends  int
	restarts uint8
	breaks   uint8 // of the first client's connections
	lateSets bool  // the acquire's SETs beyond a quorum are still on their way
}

// A node is bytes, so states can be compared and sorted.
type node [nodeSize]uint8

const (
	value      = 0 // the client whose key is there
	left       = 1 // its TTL
	quarantine = 2 // ticks without a vote
	queue      = 3 // commands of client 1
	inLine     = 6
	orders     = queue + inLine // of the others, two each
	answers    = orders + 2*others
	mute       = answers + maxExtend // extends in which it has no vote, a bit each
	vote       = mute + 1            // in the acquires of the others

	nodeSize = vote + others
)

// Commands of client 1. From extend on there is one for each extend, from repair on for each TTL
// and extend.
const (
	set    = 1
	delete = 2
	extend = 3
	repair = extend + maxExtend
)

// What a node has answered to an extend.
const (
	nothing = iota
	yes
	gone
	over // nothing more comes of it
)

// What a node has answered to an acquire of another.
const (
	granted = 1 + iota
	refused
	unasked // it has no vote
)

// Phases of the others.
const (
	outside = iota
	acquiring
	holding
	away
)

type other struct{ phase, left uint8 }

type state struct {
	node     [nodes]node
	other    [others]other
	until    uint8 // ticks of validity left to client 1
	released bool
	extends  uint8 // number begun
	open     bool  // the last has no result
	reaches  uint8 // until, if it wins
	won      uint8 // successful extends, a bit each
	held     bool  // another client has held the lock
	restarts uint8
	breaks   uint8
}

func (s *state) live() bool { return s.until > 0 && !s.released }

func (n *node) push(from, size int, c uint8) {
	for i := from; i < from+size; i++ {
		if n[i] == 0 {
			n[i] = c
			return
		}
	}
	panic("the queue is full")
}

func (n *node) pop(from, size int) (c uint8) {
	c = n[from]
	copy(n[from:from+size], n[from+1:from+size])
	n[from+size-1] = 0
	return c
}

// put is SET, with or without NX.
func (n *node) put(client, d uint8, overwrite bool) bool {
	if n[value] != 0 && !overwrite {
		return false
	}
	n[value], n[left] = client, d
	return true
}

func (n *node) del(client uint8) {
	if n[value] == client {
		n[value], n[left] = 0, 0
	}
}
