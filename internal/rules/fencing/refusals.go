package fencing

import "github.com/redlock-go/redlock/quorum"

// Advice is what follows a lost round.
type Advice uint8

const (
	Pause  Advice = iota // as on the plain path: held by others, or too few nodes have voted
	Again                // at once, with a new nonce and a larger token: refusals were about the number
	Closed               // too many have forgotten: an operator must initialize the fleet
	Misfit               // a fleet of another configuration, or no token: an error for good
)

// Refusals is what the nodes of one round answered. An OK is a vote, counted elsewhere; Refusals
// notes its node only.
type Refusals struct {
	ok, held, number, amnesia, misfit quorum.Set
}

// Add notes the answer of a node.
func (r *Refusals) Add(node int, a Answer) {
	bit := quorum.Only(node)
	switch a.Code {
	case OK:
		r.ok |= bit
	case Held:
		r.held |= bit
	case Stale, Low:
		r.number |= bit
	case Amnesia:
		r.amnesia |= bit
	case Foreign, Invalid:
		r.misfit |= bit
	}
}

// Forgotten is the nodes with the answer Amnesia: each is to be rejoined.
func (r *Refusals) Forgotten() quorum.Set { return r.amnesia }

// Advise decides what to do after a lost round. shown is the markers shown by nodes: a node without
// one may remember, unless it has answered Amnesia.
func (r *Refusals) Advise(f *Fleet, shown Memory) Advice {
	switch {
	case f.blocks(r.misfit):
		return Misfit
	case r.amnesia != 0 && shown.Perhaps(f.Nodes()&^shown.All()).Without(r.amnesia).Names(f) == "":
		return Closed
	case r.number != 0 && f.IsQuorum(r.ok|r.number) && !f.blocks(r.held):
		return Again
	}
	return Pause
}
