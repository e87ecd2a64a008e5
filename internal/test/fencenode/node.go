// Package fencenode is a node's half of the protocol of package fencing as a plain value. In the
// product the Lua scripts of that package are this half. Tests compare them with it, the model
// checker runs it beside the client's half, and the fake server answers by it.
package fencenode

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlock-go/redlock/internal/rules/fencing"
)

// Node is what one server keeps for a fleet: one sorted set, so a deletion or an eviction loses all
// of it or nothing. Each method is one script, and atomic. The lock keys are apart; the caller
// knows whether one exists, and sets it after an OK.
type Node struct {
	Marker  fencing.Marker
	Noticed uint64        // of a provisional marker: when its clients have repeated the notice, in µs
	Floor   fencing.Token // no token up to it is accepted, for any key
	Tokens  []KeyToken    // F of each key with one above the floor, sorted by name
}

// Lapse has the node answer as one without the notice that its clients have not repeated for long. It reports whether
// there is such a one. What only reads leaves it where it is.
func (n *Node) Lapse(me fencing.Me, now uint64) bool {
	if n.Marker.Phase != fencing.Provisional || n.Marker.Me.Run != me.Run || int64(now-n.Noticed) <= fencing.Lapse.Microseconds() {
		return false
	}
	n.Marker = fencing.Marker{}
	return true
}

// KeyToken is the largest token accepted by a node for a key.
type KeyToken struct {
	Name string
	F    fencing.Token
}

// read is the answer of the marker to a client: Active, Amnesia with the nonce of this
// life, or Foreign. The marker of an earlier run counts as absent: the set came back from
// a file, and the tokens since are missing. A nonce belongs to no fleet: with it a client
// still needs the answers of its own.
func (n *Node) read(me fencing.Me) fencing.Answer {
	m := &n.Marker
	switch {
	case m.Phase == fencing.Voting && m.Me == me:
		return fencing.Answer{Code: fencing.Active}
	case m.Phase == fencing.Voting && !related(m.Me, me):
		return fencing.Answer{Code: fencing.Foreign, Text: m.String()}
	case m.Phase == fencing.Absent, m.Me.Run != me.Run:
		return fencing.Answer{Code: fencing.Amnesia}
	case m.Phase == fencing.Voting:
		return fencing.Answer{Code: fencing.Active}
	}
	return fencing.Answer{Code: fencing.Amnesia, Text: m.Nonce}
}

// related reports whether the client has all configurations named by the marker. Of a marker of an
// earlier run, without a vote, any of them suffices.
func related(marker, client fencing.Me) bool {
	any, all := false, true
	for name := range strings.SplitSeq(marker.Fleet, "+") {
		has := slices.Contains(strings.Split(client.Fleet, "+"), name)
		any, all = any || has, all && has
	}
	return all || any && marker.Run != client.Run
}

// Acquire records the block of an attempt and grants it the key, or refuses. A refusal writes
// nothing. exists reports whether the lock key does. The script sets the key and records F, in any
// order: OK means that both are done, and a failure in between is no vote.
func (n *Node) Acquire(me fencing.Me, name string, b fencing.Block, exists bool) fencing.Answer {
	if state := n.read(me); state.Code != fencing.Active {
		return state
	}
	if b.First == 0 || b.First > b.Last || b.Last > fencing.MaxToken {
		return fencing.Answer{Code: fencing.Invalid}
	}
	at, found := n.find(name)
	e := n.Floor
	if found {
		e = max(e, n.Tokens[at].F)
	}
	switch {
	case exists:
		return fencing.Answer{Code: fencing.Held, Token: e}
	case b.First <= e && e == n.Floor:
		return fencing.Answer{Code: fencing.Low, Token: e}
	case b.First <= e: // never Last: the holders before would share tokens
		return fencing.Answer{Code: fencing.Stale, Token: e}
	case found:
		n.Tokens[at].F = b.Last
	default:
		n.Tokens = slices.Insert(n.Tokens, at, KeyToken{name, b.Last})
	}
	return fencing.Answer{Code: fencing.OK}
}

// Extend reports whether a lock key holding the attempt's nonce may live longer. Only a true
// extension counts: a missing key is never set. F stays.
func (n *Node) Extend(me fencing.Me, holds bool) fencing.Answer {
	if state := n.read(me); state.Code != fencing.Active {
		return state
	}
	if !holds {
		return fencing.Answer{Code: fencing.Gone}
	}
	return fencing.Answer{Code: fencing.OK}
}

// shown is an answer of the member script. Each shows the node: its largest token, of any key or the
// floor, and its marker. One script reads all: a collection in between would hide a token from both.
func (n *Node) shown(code fencing.Code) fencing.Answer {
	top := n.Floor
	for _, t := range n.Tokens {
		top = max(top, t.F)
	}
	return fencing.Answer{Code: code, Token: top, Text: n.Marker.String()}
}

// Raise lifts the floor to x, and forgets the tokens up to it. Any x is safe; a late or
// repeated one never lowers the floor.
func (n *Node) Raise(me fencing.Me, x fencing.Token) fencing.Answer {
	code := n.read(me).Code
	if code == fencing.Active {
		code = n.raise(x)
	}
	return n.shown(code)
}

// Collect forgets the tokens accepted age µs ago or earlier, by the node's TIME.
func (n *Node) Collect(me fencing.Me, age, now uint64) fencing.Answer {
	return n.Raise(me, fencing.Token(now-min(now, age)))
}

// Notice gives a forgetful node a provisional marker, and answers Amnesia: its nonce is an
// earlier one of this life, or a new one made of nonce and the node's TIME. A request delivered
// twice, in two lives of the node, makes two nonces. The node keeps tokens that it still has: a
// token too many does no harm. The nonce of a client of two configurations replaces one of clients
// of one, perhaps those of a later step. So these learn of the change under way ([NonceFleet]), while it is repeated by
// a client of its fleet.
func (n *Node) Notice(me fencing.Me, nonce string, now uint64) fencing.Answer {
	state := n.read(me)
	if state.Code == fencing.Amnesia {
		if !keeps(state.Text, nonce) {
			nonce += "." + strconv.FormatUint(now, 10)
			n.Marker, n.Noticed = fencing.Marker{Phase: fencing.Provisional, Me: fencing.Me{Run: me.Run}, Nonce: nonce}, 0
		}
		if fencing.NonceFleet(n.Marker.Nonce) == me.Fleet {
			n.Noticed = now
		}
	}
	return n.shown(state.Code)
}

// keeps reports whether a node with a nonce, or without, keeps it when given notice with another.
func keeps(has, nonce string) bool { return has != "" && (fencing.OfTwo(has) || !fencing.OfTwo(nonce)) }

// Resume gives the node its vote back at once, if it had one in an earlier run; else it is Notice. It is for nodes
// that forget nothing in a restart, by the operator's word.
func (n *Node) Resume(me fencing.Me, nonce string, now uint64) fencing.Answer {
	if n.read(me).Code == fencing.Amnesia && n.Marker.Phase == fencing.Voting {
		n.Marker.Me.Run = me.Run
		return n.shown(fencing.OK)
	}
	return n.Notice(me, nonce, now)
}

// Seal ends the service of a voting node to clients of one of two configurations alone: me has
// both. It answers as Read does. The marker then has a nonce, made as in Notice, and [Node.Rejoin]
// with it ends the seal. A sealed node keeps its nonce, except in a change the other way. A
// forgetful node loses it with the rest. A node that names the second of the two alone was opened
// before, and a late call does not seal it again.
func (n *Node) Seal(me fencing.Me, nonce string, now uint64) fencing.Answer {
	_, next, _ := strings.Cut(me.Fleet, "+")
	if n.read(me).Code == fencing.Active && n.Marker.Me.Fleet != next && (n.Marker.Me != me || n.Marker.Nonce == "") {
		n.Marker = fencing.Marker{Phase: fencing.Voting, Me: me, Nonce: nonce + "." + strconv.FormatUint(now, 10)}
	}
	return n.Read(me)
}

// Read answers OK if the node has a vote.
func (n *Node) Read(me fencing.Me) fencing.Answer {
	code := n.read(me).Code
	if code == fencing.Active {
		code = fencing.OK
	}
	return n.shown(code)
}

// Show is Read of a node that may have no vote. It shows only that a token was accepted once: others
// may have been, and are forgotten.
func (n *Node) Show(me fencing.Me) fencing.Answer {
	if n.read(me).Code == fencing.Foreign {
		return n.shown(fencing.Foreign)
	}
	return n.shown(fencing.OK)
}

// Age is for how long the node has its nonce, which Show answers too.
func (n *Node) Age(me fencing.Me, now uint64) time.Duration {
	if n.Marker.Phase != fencing.Provisional || n.Marker.Me.Run != me.Run {
		return 0
	}
	made, err := strconv.ParseUint(n.Marker.Nonce[strings.LastIndexByte(n.Marker.Nonce, '.')+1:], 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(max(int64(now-made), 0)) * time.Microsecond
}

// Rejoin gives a node with this nonce a vote, with a marker naming fleet: a forgetful node gets its
// vote back, and a sealed one serves the clients of fleet alone too. Everything else writes nothing
// and answers as the marker does. So a late or repeated request does no harm: the nonce is gone.
func (n *Node) Rejoin(me fencing.Me, nonce string, floor fencing.Token, fleet string) fencing.Answer {
	code := n.read(me).Code
	if nonce == "" || code == fencing.Foreign || n.Marker.Me.Run != me.Run || n.Marker.Nonce != nonce {
		return n.shown(code)
	}
	code = n.raise(floor)
	if code == fencing.OK {
		n.Marker = fencing.Marker{Phase: fencing.Voting, Me: fencing.Me{Fleet: fleet, Run: me.Run}}
	}
	return n.shown(code)
}

// raise lifts the floor and removes the tokens it covers.
func (n *Node) raise(x fencing.Token) fencing.Code {
	if x > fencing.MaxToken {
		return fencing.Invalid
	}
	n.Floor = max(n.Floor, x)
	n.Tokens = slices.DeleteFunc(n.Tokens, func(t KeyToken) bool { return t.F <= n.Floor })
	return fencing.OK
}

func (n *Node) find(name string) (at int, found bool) {
	return slices.BinarySearchFunc(n.Tokens, name, func(t KeyToken, name string) int {
		return strings.Compare(t.Name, name)
	})
}
