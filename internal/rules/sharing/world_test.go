package sharing_test

import "slices"

const maxNodes, maxActors = 5, 4

// phases of an actor.
const (
	idle = iota
	asks
	holds
	over
	late // its validity has ended during an extend, which a broken variant still counts
)

// ended is the rest of an ended member still in the set.
const ended = 7

// rule is a rule missing in a broken variant.
type rule uint8

const (
	none rule = iota
	quarantine
	confirmedRepairs
	extendsInTime
	oneRelease
	keysEndEarlier
	keysEndWithTheLast
	serverClocks
	bothLists
)

type world struct {
	nodes, readers, writers int
	mixed                   bool  // an actor has a TTL of two ticks, or of one
	extends, losses         uint8 // of each actor; of all nodes
	breaks                  bool  // an operator may delete the entries of a holder
	joint                   bool  // nodes 0-2 are the present list, 2-4 the next; even actors need both, odd ones the next
	lacks                   rule
	fails                   string // how the last event broke an invariant
}

const ttl = 2

type at struct {
	entry                            uint8 // the rest of its string or member; 0: none
	acquire, release, extend, repair bool  // requests not executed yet
	granted, extended, missing       bool
}

type node struct {
	at             [maxActors]at
	key, forgetful uint8 // the rest of the key of a set; of the quarantine
}

type actor struct {
	phase, ttl, valid, extension, left, extends uint8
	extending, broken                           bool // broken: an operator has deleted its entries
}

type state struct {
	nodes  [maxNodes]node
	actors [maxActors]actor
	losses uint8
}

func (w *world) actors() int            { return w.readers + w.writers }
func (w *world) reads(actor int) bool   { return actor < w.readers }
func (w *world) excludes(a, b int) bool { return !w.reads(a) || !w.reads(b) }

func (w *world) asked(actor, node int) bool {
	return node < w.nodes && (!w.joint || node >= 2 || actor%2 == 0)
}

// hasQuorum reports whether something is true of a quorum of an actor's nodes.
func (w *world) hasQuorum(s *state, actor int, has func(*at) bool) bool {
	count := func(from, to int) (n int) {
		for k := from; k < to; k++ {
			if has(&s.nodes[k].at[actor]) {
				n++
			}
		}
		return n
	}
	if !w.joint {
		return count(0, w.nodes) > w.nodes/2
	}
	return (actor%2 == 1 || count(0, 3) > 1) && (count(2, 5) > 1 || actor%2 == 0 && w.lacks == bothLists)
}

// last is the longest rest of a member at a node.
func (w *world) last(n *node) (most uint8) {
	for i := range w.readers {
		if e := n.at[i].entry; e != ended {
			most = max(most, e)
		}
	}
	return most
}

// settle gives the key of a set the rest of its last member, or deletes it.
func (w *world) settle(n *node) {
	n.key = w.last(n)
	for i := range w.readers {
		if n.key == 0 {
			n.at[i].entry = 0
		}
	}
}

// isString reports whether a writer has a node.
func (w *world) isString(n *node) bool {
	return slices.ContainsFunc(n.at[w.readers:w.actors()], func(a at) bool { return a.entry > 0 })
}

// add is an acquire, or a repair, at a node.
func (w *world) add(n *node, actor int, ttl uint8) bool {
	switch {
	case w.isString(n), !w.reads(actor) && n.key > 0:
		return false
	case !w.reads(actor):
		n.at[actor].entry = ttl
		return true
	}
	for i := range w.readers {
		e := &n.at[i].entry
		if *e == ended || w.lacks == serverClocks && i != actor && *e == 1 { // a client's clock is a tick ahead
			*e = 0
		}
	}
	if n.at[actor].entry == 0 {
		n.at[actor].entry = ttl
	}
	if w.lacks == keysEndWithTheLast {
		n.key = ttl
	} else {
		w.settle(n)
	}
	return true
}

// check compares a state with the one before an event.
func (w *world) check(s, before *state, e event) {
	for k := range w.nodes {
		n := &s.nodes[k]
		for i := range w.actors() {
			if b := before.nodes[k].at[i].entry; e.actor >= 0 && i != int(e.actor) && b != n.at[i].entry && b != ended {
				w.fails = "another's entry is changed: " + e.what
			}
		}
		if n.key != w.last(n) {
			w.fails = "a key and its last member end at different times: " + e.what
		}
	}
	for i := range w.actors() {
		for j := range i {
			a, b := &s.actors[i], &s.actors[j]
			if a.phase == holds && b.phase == holds && !a.broken && !b.broken && w.excludes(i, j) {
				w.fails = "two hold that exclude each other: " + e.what
			}
		}
	}
}
