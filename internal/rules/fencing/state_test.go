package fencing_test

import "slices"

// The model: clients and nodes of one key; every state is visited. Its bounds are in world; its
// omissions are in the comment of stepper.next.

const (
	maxNodes    = 5
	maxAttempts = 4
	maxClients  = 3
	maxCalls    = 3
)

// Phases of an attempt.
const (
	unstarted = iota
	running
	succeeded
	ended // without success
)

// Phases of a client bringing a node back.
const (
	idle    = iota
	sent    // timer from the send: NOTICE is on its way
	waiting // in quarantine
	reading
)

// Markers of a node.
const (
	absent = iota
	active
	provisional // with the nonce of this life
	outdated    // active, by an earlier run: the state came back from a file

	// In a change active is of the present configuration alone, and these have a vote too.
	activeNext // of the next one alone
	activeBoth // of both
	sealed     // of both, with a nonce
	sealedBack // the same, for the way back

	// In looks of acts, provisional is by clients of the present one alone.
	provisionalNext // by clients of the next one
	provisionalBoth // by clients of both
)

type column struct { // a node
	marker, f, floor uint8
	fresh            uint16 // REJOINs under way with the present nonce, by floor and names, a bit each
	stale            uint16 // REJOINs with an earlier one
	votes            uint8  // attempts with its vote, still counting, a bit each

	calls [maxCalls]uint8 // operators' calls' knowledge of it: counted, known, again; of other acts the shown state
}

type attempt struct {
	phase, token uint8
	step         uint8 // of its client in the change
	late         bool  // a success must not follow: a token as large was granted before it began
}

type client struct {
	phase, node, wait, floor uint8
	step                     uint8    // of the client in the change
	read                     [3]uint8 // nodes, a bit each, by what their markers name
	stale                    bool     // its nonce is of an earlier life of the node
	by                       uint8    // its act, from 1 on
}

// call is an act of an operator.
type call struct {
	phase, floor uint8
	stage        uint8 // of an act; of a change of groups the phase of each, two bits each
}

type state struct {
	nodes    [maxNodes]column
	attempts [maxAttempts]attempt
	clients  [maxClients]client
	calls    [maxCalls]call
	losses   uint8
}

// key is a hash of a state, the same for states that differ only in names of nodes and clients. Of the 40 million
// states of the largest search no two share the same 128 bits but by an accident of one in 10^23.
type key [2]uint64

func (k *key) add(word uint64) {
	k[0], k[1] = mix(k[0]^word), mix(k[1]*0x9e3779b97f4a7c15+word)
}

// word packs up to eight fields into one word.
func word(fields ...uint8) (v uint64) {
	for i, field := range fields {
		v |= uint64(field) << (8 * i)
	}
	return v
}

var orders = [...][maxClients]int{{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}

// key is the least of the keys over permutations of clients, with the nodes sorted.
// Nodes of the same configurations are symmetric: all facts about one are in its column. Attempts
// are not, since they are numbered in the order of their start. Only clients alike but for their
// nodes need to be tried in several orders.
func (w *world) key(s *state) (least key) {
	var alone [maxClients]uint64
	for r, k := range s.clients[:w.clients] {
		alone[r] = word(k.phase, k.wait, k.floor, uint8(bit(k.stale)), k.step, k.by)
	}
	found := false
	for _, order := range orders[:[...]int{1, 1, 2, 6}[w.clients]] {
		if w.clients >= 2 && alone[order[0]] > alone[order[1]] || w.clients == 3 && alone[order[1]] > alone[order[2]] {
			continue
		}
		if k := w.keyInOrder(s, order[:w.clients], &alone); !found || slices.Compare(k[:], least[:]) < 0 {
			least, found = k, true
		}
	}
	return least
}

func (w *world) keyInOrder(s *state, order []int, alone *[maxClients]uint64) (k key) {
	var columns [maxNodes][2]uint64
	for i, n := range s.nodes[:w.nodes] {
		var of [maxClients]uint8 // the relation of a client to the node
		for at, r := range order {
			c := &s.clients[r]
			of[at] = c.readOf(i)<<1 | uint8(bit(c.phase != idle && int(c.node) == i))
		}
		columns[i] = [2]uint64{
			word(n.marker, n.f, n.floor, n.votes, n.calls[0], n.calls[1], n.calls[2]),
			uint64(n.fresh) | uint64(n.stale)<<16 | word(0, 0, 0, 0, of[0], of[1], of[2]),
		}
	}
	for from, to := 0, 0; from < w.nodes; from = to {
		for to = from; to < w.nodes && w.role(from) == w.role(to); to++ {
		}
		slices.SortFunc(columns[from:to], func(a, b [2]uint64) int { return slices.Compare(a[:], b[:]) })
	}
	for _, c := range columns[:w.nodes] {
		k.add(c[0])
		k.add(c[1])
	}
	for _, a := range s.attempts[:w.attempts] {
		k.add(word(a.phase, a.token, a.step, uint8(bit(a.late))))
	}
	for _, r := range order {
		k.add(alone[r])
	}
	for _, c := range s.calls[:w.calls] {
		k.add(word(c.phase, c.floor, c.stage))
	}
	k.add(uint64(s.losses))
	return k
}

// readOf returns the names in the marker of node i at the time of its read, from 1 on.
func (k *client) readOf(i int) uint8 {
	for names, nodes := range k.read {
		if nodes>>i&1 == 1 {
			return uint8(names) + 1
		}
	}
	return 0
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}
