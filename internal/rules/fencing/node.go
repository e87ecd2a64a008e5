package fencing

import (
	"slices"
	"strconv"
	"strings"
)

// Node is what one server keeps for a fleet: one sorted set, so a deletion or an eviction loses all
// of it or nothing. Each method is one script, and atomic. The lock keys are apart; the caller
// knows whether one exists, and sets it after an OK.
type Node struct {
	Marker Marker
	Floor  Token      // no token up to it is accepted, for any key
	Tokens []KeyToken // F of each key with one above the floor, sorted by name
}

// KeyToken is the largest token accepted by a node for a key.
type KeyToken struct {
	Name string
	F    Token
}

// Acquire records the block of an attempt and grants it the key, or refuses. A refusal writes
// nothing. exists reports whether the lock key does. The script sets the key and records F, in any
// order: OK means that both are done, and a failure in between is no vote.
func (n *Node) Acquire(me Me, name string, b Block, exists bool) Answer {
	if state := n.Marker.read(me); state.Code != Active {
		return state
	}
	if !b.valid() {
		return Answer{Code: Invalid}
	}
	at, found := n.find(name)
	e := n.Floor
	if found {
		e = max(e, n.Tokens[at].F)
	}
	switch {
	case exists:
		return Answer{Code: Held, Token: e}
	case b.First <= e && e == n.Floor:
		return Answer{Code: Low, Token: e}
	case b.First <= e: // never Last: the holders before would share tokens
		return Answer{Code: Stale, Token: e}
	case found:
		n.Tokens[at].F = b.Last
	default:
		n.Tokens = slices.Insert(n.Tokens, at, KeyToken{name, b.Last})
	}
	return Answer{Code: OK}
}

// Extend reports whether a lock key holding the attempt's nonce may live longer. Only a true
// extension counts: a missing key is never set. F stays.
func (n *Node) Extend(me Me, holds bool) Answer {
	if state := n.Marker.read(me); state.Code != Active {
		return state
	}
	if !holds {
		return Answer{Code: Gone}
	}
	return Answer{Code: OK}
}

// Raise lifts the floor to x, and forgets the tokens up to it. Any x is safe; a late or
// repeated one never lowers the floor.
func (n *Node) Raise(me Me, x Token) Answer {
	if state := n.Marker.read(me); state.Code != Active {
		return state
	}
	return n.raise(x)
}

// Collect forgets the tokens accepted age µs ago or earlier, by the node's TIME.
func (n *Node) Collect(me Me, age, now uint64) Answer { return n.Raise(me, Token(now-min(now, age))) }

// Notice gives a forgetful node a provisional marker, and answers Amnesia with its nonce: an
// earlier one of this life, or a new one made of nonce and the node's TIME. A request delivered
// twice, in two lives of the node, makes two nonces. The node keeps tokens that it still has: a
// token too many does no harm. The nonce of a client of two configurations replaces one of clients
// of one, perhaps those of a later step. So these learn of the change under way ([NonceFleet]).
func (n *Node) Notice(me Me, nonce string, now uint64) Answer {
	state := n.Marker.read(me)
	if state.Code == Amnesia && !Keeps(state.Text, nonce) {
		state.Text = nonce + "." + strconv.FormatUint(now, 10)
		n.Marker = Marker{Provisional, Me{Run: me.Run}, state.Text}
	}
	return state
}

// Keeps reports whether a node with a nonce, or without, keeps it when given notice with another.
func Keeps(has, nonce string) bool { return has != "" && (ofTwo(has) || !ofTwo(nonce)) }

// Resume gives the node its vote back at once, if it had one in an earlier run. It is for nodes
// that forget nothing in a restart, by the operator's word.
func (n *Node) Resume(me Me) Answer {
	state := n.Marker.read(me)
	if state.Code == Amnesia && n.Marker.Phase == Voting {
		n.Marker.Me.Run = me.Run
		return Answer{Code: OK}
	}
	return state
}

// Seal ends the service of a voting node to clients of one of two configurations alone: me has
// both. It answers as Read does. The marker then has a nonce, made as in Notice, and [Node.Rejoin]
// with it ends the seal. A sealed node keeps its nonce, except in a change the other way. A
// forgetful node loses it with the rest. A node that names the second of the two alone was opened
// before, and a late call does not seal it again.
func (n *Node) Seal(me Me, nonce string, now uint64) Answer {
	if state := n.Marker.read(me); state.Code != Active {
		return state
	}
	if _, next, _ := strings.Cut(me.Fleet, "+"); n.Marker.Me.Fleet != next && (n.Marker.Me != me || n.Marker.Nonce == "") {
		n.Marker = Marker{Voting, me, nonce + "." + strconv.FormatUint(now, 10)}
	}
	return n.Show(me)
}

// Read answers the node's largest token, of any key or the floor, and its marker. One script reads
// all: a collection in between would hide a token from both.
func (n *Node) Read(me Me) Answer {
	if state := n.Marker.read(me); state.Code != Active {
		return state
	}
	return n.Show(me)
}

// Show is Read of a node that may have no vote. It shows only that a token was accepted once: others
// may have been, and are forgotten.
func (n *Node) Show(me Me) Answer {
	if state := n.Marker.read(me); state.Code == Foreign {
		return state
	}
	top := n.Floor
	for _, t := range n.Tokens {
		top = max(top, t.F)
	}
	return Answer{Code: OK, Token: top, Text: n.Marker.String()}
}

// Rejoin gives a node with this nonce a vote, with a marker naming fleet: a forgetful node gets its
// vote back, and a sealed one serves the clients of fleet alone too. Everything else writes nothing
// and answers as the marker does. So a late or repeated request does no harm: the nonce is gone.
func (n *Node) Rejoin(me Me, nonce string, floor Token, fleet string) Answer {
	state := n.Marker.read(me)
	if nonce == "" || state.Code == Foreign || n.Marker.Me.Run != me.Run || n.Marker.Nonce != nonce {
		return state
	}
	a := n.raise(floor)
	if a.Code == OK {
		n.Marker = Marker{Phase: Voting, Me: Me{fleet, me.Run}}
	}
	return a
}

// raise lifts the floor and removes the tokens it covers.
func (n *Node) raise(x Token) Answer {
	if x > MaxToken {
		return Answer{Code: Invalid}
	}
	n.Floor = max(n.Floor, x)
	n.Tokens = slices.DeleteFunc(n.Tokens, func(t KeyToken) bool { return t.F <= n.Floor })
	return Answer{Code: OK}
}

func (n *Node) find(name string) (at int, found bool) {
	return slices.BinarySearchFunc(n.Tokens, name, func(t KeyToken, name string) int {
		return strings.Compare(t.Name, name)
	})
}
