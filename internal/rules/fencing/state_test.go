package fencing_test

import (
	"fmt"
	"math/bits"
	"slices"
)

// The model: clients and nodes of one key; every state is visited. Its bounds are in world; its
// omissions are in the comment of stepper.next.

const (
	maxNodes    = 5
	maxAttempts = 4
	maxClients  = 3
	maxCalls    = 3
)

// Phases of an attempt. A successful one may hand over (blocks).
const (
	unstarted = iota
	running
	succeeded
	ended      // without success
	handing    // succeeded; a hand-over is being confirmed
	handedOver // to the second holder
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

	// Where acts look at nodes, provisional is by clients of the present one alone.
	provisionalNext // by those of the next one
	provisionalBoth // by those of both
)

type column struct { // a node
	marker, f, floor uint8
	fresh            uint16 // REJOINs under way with the present nonce, by floor and names, a bit each
	stale            uint16 // those with an earlier one
	votes            uint8  // attempts with its vote, still counting, a bit each
	owner            uint8  // blocks: the attempt with the lock key's nonce, from 1 on

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

// packed is a state in three words; equal for states with different names of nodes and clients
// only.
type packed [3]uint64

// packer appends fields to a packed state, or takes them out.
type packer struct {
	words packed
	at    uint
}

func (p *packer) put(v uint64, width uint) {
	word, bit := p.at/64, p.at%64
	p.words[word] |= v << bit
	if bit+width > 64 {
		p.words[word+1] |= v >> (64 - bit)
	}
	p.at += width
}

func (p *packer) take(width uint) uint64 {
	word, bit := p.at/64, p.at%64
	v := p.words[word] >> bit
	if bit+width > 64 {
		v |= p.words[word+1] << (64 - bit)
	}
	p.at += width
	return v & (1<<width - 1)
}

// layout is the widths of fields in a world.
type layout struct {
	token, set, owner, stale, attempts, clients, column uint
	marker, names, step, calls, read, by, stage         uint
}

func (w *world) measure() {
	l := &w.layout
	l.token = uint(bits.Len8(w.top()))
	l.marker, l.names, l.read, l.calls = 2, 1, 1, uint(w.calls)
	if w.to != 0 {
		l.marker, l.names, l.read, l.step = 3, 3, 2, 2
	}
	if w.acts != "" {
		l.marker, l.by, l.stage = 4, 2, 4
	}
	l.set = (uint(w.top()) + 1) * l.names
	l.attempts, l.clients = uint(w.attempts), uint(w.clients)
	if w.clients == 0 && w.calls == 0 {
		l.set = 0
	}
	if w.block > 1 {
		l.owner = uint(bits.Len(uint(w.attempts)))
	}
	if w.keepStale {
		l.stale = l.set
	}
	l.column = l.marker + 2*l.token + l.set + l.stale + l.attempts + l.owner + l.clients*(1+l.read) + l.calls*3
	all := l.column*uint(w.nodes) + l.attempts*(4+l.token+l.step) + l.clients*(3+l.attempts+l.token+l.step+l.by) + l.calls*(2+l.token+l.stage) + 3
	if all > 192 || l.column > 64 || l.set > 16 {
		panic(fmt.Sprintf("%s: a state has %d bits, a node %d", w.name, all, l.column))
	}
}

var orders = [...][maxClients]int{{0, 1, 2}, {1, 0, 2}, {0, 2, 1}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}

// pack returns the least of the packed states over permutations of clients, with the nodes sorted.
// Nodes of the same configurations are symmetric: all facts about one are in its column. Attempts
// are not, since they are numbered in the order of their start. Only clients alike but for their
// nodes need to be tried in several orders.
func (w *world) pack(s *state) (best packed) {
	l := &w.layout
	var alone [maxClients]uint64
	for r := range w.clients {
		k := &s.clients[r]
		alone[r] = uint64(k.phase) | uint64(k.wait)<<2 | uint64(k.floor)<<(2+l.attempts) | bit(k.stale)<<(2+l.attempts+l.token) | uint64(k.step)<<(3+l.attempts+l.token) | uint64(k.by)<<(3+l.attempts+l.token+l.step)
	}
	found := false
	for _, order := range orders[:[...]int{1, 1, 2, 6}[w.clients]] {
		if w.clients >= 2 && alone[order[0]] > alone[order[1]] || w.clients == 3 && alone[order[1]] > alone[order[2]] {
			continue
		}
		if p := w.packOrdered(s, &order, &alone); !found || slices.Compare(p[:], best[:]) < 0 {
			best, found = p, true
		}
	}
	return best
}

func (w *world) packOrdered(s *state, order *[maxClients]int, alone *[maxClients]uint64) packed {
	var columns [maxNodes]uint64
	l := w.layout
	for i := range w.nodes {
		n := s.nodes[i]
		c, at := uint64(n.marker), l.marker
		c, at = c|uint64(n.f)<<at, at+l.token
		c, at = c|uint64(n.floor)<<at, at+l.token
		c, at = c|uint64(n.fresh)<<at, at+l.set
		c, at = c|uint64(n.stale)<<at, at+l.stale
		c, at = c|uint64(n.votes)<<at, at+l.attempts
		c, at = c|uint64(n.owner)<<at, at+l.owner
		for _, r := range order[:w.clients] {
			k := &s.clients[r]
			c, at = c|bit(k.phase != idle && int(k.node) == i)<<at, at+1
			c, at = c|k.readOf(i)<<at, at+l.read
		}
		for _, known := range n.calls[:w.calls] {
			c, at = c|uint64(known)<<at, at+3
		}
		columns[i] = c
	}
	for from, to := 0, 0; from < w.nodes; from = to {
		for to = from; to < w.nodes && w.role(from) == w.role(to); to++ {
		}
		slices.Sort(columns[from:to])
	}
	p := packer{}
	for _, c := range columns[:w.nodes] {
		p.put(c, l.column)
	}
	for _, a := range s.attempts[:w.attempts] {
		p.put(uint64(a.phase)|bit(a.late)<<3|uint64(a.token)<<4|uint64(a.step)<<(4+l.token), 4+l.token+l.step)
	}
	for _, r := range order[:w.clients] {
		p.put(alone[r], 3+l.attempts+l.token+l.step+l.by)
	}
	for _, c := range s.calls[:w.calls] {
		p.put(uint64(c.phase)|uint64(c.floor)<<2|uint64(c.stage)<<(2+l.token), 2+l.token+l.stage)
	}
	p.put(uint64(s.losses), 3)
	return p.words
}

func (w *world) unpack(words packed) (s state) {
	l := &w.layout
	p := packer{words: words}
	for i := range w.nodes {
		n := &s.nodes[i]
		n.marker = uint8(p.take(l.marker))
		n.f = uint8(p.take(l.token))
		n.floor = uint8(p.take(l.token))
		n.fresh = uint16(p.take(l.set))
		n.stale = uint16(p.take(l.stale))
		n.votes = uint8(p.take(l.attempts))
		n.owner = uint8(p.take(l.owner))
		for r := range w.clients {
			k := &s.clients[r]
			if p.take(1) == 1 {
				k.node = uint8(i)
			}
			if names := p.take(l.read); names != 0 {
				k.read[names-1] |= 1 << i
			}
		}
		for c := range w.calls {
			n.calls[c] = uint8(p.take(3))
		}
	}
	for i := range w.attempts {
		a := &s.attempts[i]
		a.phase = uint8(p.take(3))
		a.late = p.take(1) == 1
		a.token = uint8(p.take(l.token))
		a.step = uint8(p.take(l.step))
	}
	for r := range w.clients {
		k := &s.clients[r]
		k.phase = uint8(p.take(2))
		k.wait = uint8(p.take(l.attempts))
		k.floor = uint8(p.take(l.token))
		k.stale = p.take(1) == 1
		k.step = uint8(p.take(l.step))
		k.by = uint8(p.take(l.by))
	}
	for c := range w.calls {
		s.calls[c].phase = uint8(p.take(2))
		s.calls[c].floor = uint8(p.take(l.token))
		s.calls[c].stage = uint8(p.take(l.stage))
	}
	s.losses = uint8(p.take(3))
	return s
}

// readOf is what the marker of node i named when it was read, from 1 on.
func (k *client) readOf(i int) uint64 {
	for names, nodes := range k.read {
		if nodes>>i&1 == 1 {
			return uint64(names) + 1
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
